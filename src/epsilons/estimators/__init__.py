"""Personalized models for scikit-learn: `fit(X, y, epsilons=e)`, then `predict` and `score` as always."""

try:
    import sklearn  # noqa: F401
except ImportError as missing:
    raise ImportError("Models need scikit-learn: pip install 'epsilons[sklearn]'") from missing

from epsilons.estimators.models import PersonalizedLinearRegression, PersonalizedLogisticRegression

__all__ = ["PersonalizedLinearRegression", "PersonalizedLogisticRegression"]
