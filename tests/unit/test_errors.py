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
    found = {
        name: kind.code for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)
    }
    assert found == CODES
    for name in CODES:
        assert getattr(eps, name) is getattr(errors, name)
        assert issubclass(getattr(eps, name), eps.EpsilonsError)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "What."),
        ({"rule": "Which rule."}, "What. Which rule."),
        ({"suggest": "this"}, "What. Try: this"),
        ({"rule": "Which rule.", "suggest": "this"}, "What. Which rule. Try: this"),
    ],
)
def test_a_message_says_what_happened_which_rule_and_what_to_try(arguments: dict[str, str], text: str) -> None:
    error = eps.PlanError("What.", **arguments)
    assert str(error) == text
    assert (error.what, error.rule, error.hint) == ("What.", arguments.get("rule", ""), arguments.get("suggest", ""))


def test_an_argument_is_written_by_each_front_in_its_own_language() -> None:
    bounds, spread = errors.Argument("bounds", (0, 100)), errors.Argument("spread")
    error = eps.PlanError(
        (errors.Argument("share", 7), " is too much."), suggest=(bounds, ", or leave ", spread, " out")
    )
    assert str(error) == "share=7 is too much. Try: bounds=(0, 100), or leave spread out"
    assert error.message(lambda one: f"--{one.name}") == "--share is too much. Try: --bounds, or leave --spread out"
    assert (error.what, error.hint) == ("share=7 is too much.", "bounds=(0, 100), or leave spread out")


def test_the_tree_is_drawn_as_it_is() -> None:
    for name in CODES:
        assert name in (errors.__doc__ or "")
