"""The estimators as scikit-learn's own tools use them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

import epsilons as eps
from epsilons.estimators import PersonalizedLinearRegression, PersonalizedLogisticRegression
from epsilons.testing import seeded


def people(size: int = 5_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(9)
    X = random.uniform(0, 10, (size, 2))
    return X, X @ (1.0, 2.0) + 3 + random.normal(0, 1, size), random.choice([0.2, 1.0, np.inf], size)


def linear(**options: Any) -> PersonalizedLinearRegression:
    return PersonalizedLinearRegression(bounds_X=(0, 10), bounds_y=(0, 40), **options)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_fit_predict_and_score() -> None:
    X, y, epsilons = people(20_000)  # enough that slopes err by .04
    model = linear().fit(X, y, epsilons=epsilons)
    assert model.score(X, y) > 0.9
    assert model.coef_ == pytest.approx([1, 2], abs=0.3)
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.release_.charges[0.2] == 0.2
    assert model.n_features_in_ == 2


def test_classes_are_public_and_need_not_occur() -> None:
    X, y, epsilons = people()
    model = PersonalizedLogisticRegression(bounds_X=(0, 10), classes=("low", "high"))
    model.fit(X, np.where(y > 18, "high", "low"), epsilons=epsilons)
    assert model.score(X, np.where(y > 18, "high", "low")) > 0.85
    assert model.classes_.tolist() == ["low", "high"]
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "high")).all()
    lonely = PersonalizedLogisticRegression(bounds_X=(0, 10)).fit(X, np.zeros(len(X)), epsilons=epsilons)
    assert lonely.classes_.tolist() == [0, 1]
    strangers = PersonalizedLogisticRegression(bounds_X=(0, 10)).fit(X, np.full(len(X), 7), epsilons=epsilons)
    assert np.isfinite(strangers.coef_).all()


@pytest.mark.parametrize("model", [linear(), PersonalizedLogisticRegression(bounds_X=(0, 10))])
def test_without_epsilons_or_bounds_it_is_an_error(model: Any) -> None:
    X, y, epsilons = people(50)
    with pytest.raises(eps.PreferenceError, match="no epsilons"):
        model.fit(X, y)
    with pytest.raises(eps.PlanError, match="no bounds"):
        clone(model).set_params(bounds_X=None).fit(X, y, epsilons=epsilons)
    with pytest.raises(eps.PlanError, match="bounds are by name"):
        clone(model).set_params(bounds_X={"x": (0, 1), "z": ["a", "b"]}).fit(X, y, epsilons=epsilons)
    with pytest.raises(eps.PlanError, match="random bits"):
        model.fit(X, y, epsilons=epsilons, entropy=7)
    with pytest.raises(eps.PlanError, match=r"A fit takes no 'epsilon'\. Try: epsilons"):
        model.fit(X, y, epsilon=epsilons)
    with pytest.raises(eps.PlanError, match=r"A fit needs 'y'\."):
        model.fit(X)


def test_seeded_models_repeat_themselves_and_say_so() -> None:
    X, y, epsilons = people(200)
    one, two = (linear().fit(X, y, epsilons=epsilons, entropy=seeded(5)) for _ in range(2))
    assert one.coef_.tolist() == two.coef_.tolist()
    assert not one.release_.private
    assert linear().fit(X, y, epsilons=epsilons).coef_.tolist() != linear().fit(X, y, epsilons=epsilons).coef_.tolist()


def test_clones_and_pickles_keep_parameters() -> None:
    model = linear(mechanism="sample", threshold="mean")
    assert clone(model).get_params() == model.get_params()
    X, y, epsilons = people(200)
    fitted = pickle.loads(pickle.dumps(model.fit(X, y, epsilons=epsilons)))
    assert fitted.predict(X).tolist() == model.predict(X).tolist()


def test_frames_bring_names_and_are_held_to_them() -> None:
    X, y, epsilons = people(200)
    frame = pandas.DataFrame(X, columns=["age", "schooling"])
    model = linear().fit(frame, y, epsilons=epsilons)
    assert model.feature_names_in_.tolist() == ["age", "schooling"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["schooling", "age"]])


def test_arrow_columns_fit_like_arrays() -> None:
    """A column as it comes out of a table, in one piece or several, with a missing entry or of words."""
    X, y, epsilons = people(60)
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    words = np.where(y > 18, "high", "low").tolist()
    classes = PersonalizedLogisticRegression(bounds_X=(0, 10), classes=("low", "high"))
    targets: list[tuple[Any, Any, list[Any]]] = [
        (linear(), y, [pa.array(y), pa.chunked_array([y[:7], y[7:]])]),
        (linear(), [None, *y[1:]], [pa.array([None, *y[1:]]), pa.chunked_array([[None], y[1:]], pa.float64())]),
        (classes, words, [pa.array(words), pa.chunked_array([words]), pa.array(words).dictionary_encode()]),
    ]
    for model, plain, columns in targets:
        expected = clone(model).fit(X, plain, epsilons=epsilons, entropy=seeded(3))
        for features in (X, table, table.to_batches()[0]):
            for target in columns:
                fitted = clone(model).fit(features, target, epsilons=epsilons, entropy=seeded(3))
                assert [*fitted.release_.value.values()] == [*expected.release_.value.values()]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        linear().fit(table, pa.array(y[1:]), epsilons=epsilons)
    scored = linear().fit(table, pa.array(y), epsilons=epsilons, entropy=seeded(3))
    assert scored.score(table, pa.array(y)) == scored.score(table, y)
    assert scored.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.usefixtures("routing")
def test_epsilons_travel_through_pipelines_and_searches() -> None:
    X, y, epsilons = people(1_000)
    model = linear().set_fit_request(epsilons=True)
    pipeline = make_pipeline(FunctionTransformer(), model)
    pipeline.fit(X, y, epsilons=epsilons)
    assert set(pipeline[-1].release_.charges) == {0.2, 1.0, np.inf}
    search = GridSearchCV(model, {"mechanism": ["weighted", "threshold"]}, cv=3).fit(X, y, epsilons=epsilons)
    assert search.best_estimator_.release_.mechanism in ("weighted", "threshold")
    assert len(cross_val_score(pipeline, X, y, params={"epsilons": epsilons}, cv=3)) == 3


@pytest.mark.usefixtures("routing")
def test_epsilons_that_are_not_requested_do_not_get_lost_silently() -> None:
    X, y, epsilons = people(100)
    with pytest.raises(Exception, match="epsilons"):
        make_pipeline(FunctionTransformer(), linear()).fit(X, y, epsilons=epsilons)


def test_a_scaler_that_reads_the_data_is_the_callers_leak_not_ours() -> None:
    """Nothing here can see it; the page on models says so. The pipeline itself works."""
    X, y, epsilons = people(500)
    pipeline = Pipeline([("scale", MinMaxScaler()), ("model", PersonalizedLinearRegression((0, 1), (0, 40)))])
    assert pipeline.fit(X, y, model__epsilons=epsilons).predict(X).shape == (500,)


@pytest.mark.parametrize("bad", [None, "words", float("nan"), float("inf"), 10**400, object(), [1]])
def test_no_entry_raises_or_spoils_the_model(bad: Any) -> None:
    X, y, epsilons = people(60)
    entries, targets = X.astype(object), y.astype(object)
    entries[3, 1] = bad
    targets[4] = bad
    for model in (linear(), PersonalizedLogisticRegression(bounds_X=(0, 10))):
        model.fit(entries, targets, epsilons=epsilons)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(np.asarray(model.intercept_, float)).all()
        model.predict(entries)
    assert np.isfinite(linear().fit(entries.tolist(), targets.tolist(), epsilons=epsilons).predict(entries)).all()


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['sklearn'] = None\nimport epsilons.estimators"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'epsilons[sklearn]'" in done.stderr
