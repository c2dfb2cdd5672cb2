"""The stubs of made functions and methods are those of the catalogue."""

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import epsilons as eps
from epsilons.dataset.batch import Batch
from epsilons.statistics.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]


def signatures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("signatures", ROOT / "tools" / "signatures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stubs_are_current() -> None:
    for path, text in signatures().written():
        assert path.read_text() == text, "make signatures"


def test_methods_are_named_and_documented() -> None:
    for name in CATALOGUE:
        for owner in (eps.Dataset, Batch):
            method = getattr(owner, name)
            assert method.__name__ == name
            assert method.__qualname__ == f"{owner.__name__}.{name}"
            assert "self" in inspect.signature(method).parameters
            shown = [argument for argument in inspect.signature(method).parameters if argument != "self"]
            assert all(f"\n{argument}: " in method.__doc__ for argument in shown)
            assert inspect.signature(method).parameters["entropy"].kind is inspect.Parameter.KEYWORD_ONLY
