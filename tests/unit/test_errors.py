"""One small tree of errors, each with a stable code."""

import inspect

import pytest

import epsilons as eps
from epsilons import errors

CODES = {
    "EpsilonsError": "error",
    "PreferenceError": "preference",
    "DataError": "data",
    "PlanError": "plan",
    "BudgetExceeded": "budget",
    "LedgerError": "ledger",
    "ProtocolError": "protocol",
}


def test_codes_are_pinned_and_every_error_is_exported() -> None:
    found = {name: kind.code for name, kind in inspect.getmembers(errors, inspect.isclass)}
    assert found == CODES
    for name in CODES:
        assert getattr(eps, name) is getattr(errors, name)
        assert issubclass(getattr(eps, name), eps.EpsilonsError)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "What."),
        ({"rule": "Which rule."}, "What. Which rule."),
        ({"hint": "this"}, "What. Try: this"),
        ({"rule": "Which rule.", "hint": "this"}, "What. Which rule. Try: this"),
    ],
)
def test_a_message_says_what_happened_which_rule_and_what_to_try(arguments: dict[str, str], text: str) -> None:
    error = eps.PlanError("What.", **arguments)
    assert str(error) == text
    assert (error.what, error.rule, error.hint) == ("What.", arguments.get("rule", ""), arguments.get("hint", ""))


def test_the_tree_is_drawn_as_it_is() -> None:
    for name in CODES:
        assert name in (errors.__doc__ or "")
