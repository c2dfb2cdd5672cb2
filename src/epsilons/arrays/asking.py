"""One question on arrays: check, choose a mechanism, draw; and its plan, which can be asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epsilons.arguments.checks import check_whole, refuse
from epsilons.arguments.options import ARRAYS
from epsilons.arguments.reading import BY_TYPE, AskOptions, both_given, read_call, read_plan, take_places
from epsilons.calls import name_statistic
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError, PreferenceError
from epsilons.mechanisms.base import Account, Mechanism, charges_of, take_named
from epsilons.noise.entropy import system
from epsilons.planner.choose import PlanRow, choose
from epsilons.planner.plan import Plan, nobody_left, scale_question
from epsilons.preferences import Roster, aligned_roster, roster_of
from epsilons.preferences.groups import read_groups, take_groups
from epsilons.release import Release, exact_release, make_release
from epsilons.statistics.base import Question, RowScope
from epsilons.statistics.catalogue import find_statistic
from epsilons.statistics.entry import Entry
from epsilons.statistics.features import check_order, feature_names, spread_words
from epsilons.statistics.regression import Regression
from epsilons.summaries.arrays import ArrayPeople, Rows


def make_function(entry: Entry) -> Callable[..., Release]:
    """The function on arrays that asks for a statistic: one release at a share of everybody's epsilon."""

    def ask(*given: Any, **named: Any) -> Release:
        call = read_call(entry, ARRAYS, given, named)
        groups, granted = _groups(call.options, call.data["epsilons"])
        values, own = _values(entry, call.data, call.own)
        whole = _is_whole(entry, call.data)
        asked, note = _question(entry, own, call.options, groups, BY_TYPE if whole else "")
        roster = aligned_roster(granted, values)
        return _answer(asked, values, roster, call.options, note).about(roster.covered)

    name_statistic(entry, ARRAYS, ask, "", Release)
    return ask


def make_plan(statistic: Any, epsilons: Any, arguments: Mapping[str, Any]) -> Plan:
    """The plan of a question; see `eps.plan`."""
    given, entry = dict(arguments), find_statistic(statistic)
    error, people = given.pop("error", None), given.pop("people", None)
    if error is not None and given.get("share") is not None:
        raise both_given()
    if people is not None:
        refusal = refuse("people", people, "A whole number from 1.", Argument("people", 1000))
        people = check_whole(people, refusal=refusal)
    call = read_plan(entry, ARRAYS, given)
    groups, granted = _groups(call.options, epsilons)
    options, (question, _) = call.options, _question(entry, call.own, call.options, groups)
    roster = roster_of(granted, people=people)
    if people is not None and people != len(roster):
        hint = ("leave ", Argument("people"), " out, or one epsilon for all")
        what = f"{show_count(people, 'person', 'people')} and {show_count(len(roster), 'epsilon')}."
        raise PlanError(what, suggest=hint)
    if roster.levels.all_public:
        raise PlanError("There is nothing to plan.", rule="Everyone is public (or nobody is there): answers are exact.")

    def ask_row(row: PlanRow, mechanism: str, data: Sequence[Any], named: Mapping[str, Any]) -> Release:
        """The row as it was shown, with the values of the people it was planned for, or a model's X and y."""
        wanted = ("X", "y") if entry.model else ("values",)
        hint = f"only {' and '.join(wanted)}"
        found = take_places("plan.ask", wanted, wanted, data, named, hint)
        for name in (name for name in found if name not in wanted):
            raise PlanError(("plan.ask takes no ", Argument(name), "."), rule="It asks what was planned.", suggest=hint)
        values, own = _values(entry, found, call.own)
        # As it was planned, whatever the type of the values says.
        asked, note = _question(entry, own, options, groups)
        one, other = asked.statistic, question.statistic
        # A model of more features than were planned would err more than the plan says.
        if isinstance(one, Regression) and isinstance(other, Regression) and len(one.bounds) != len(other.bounds):
            what = f"This plan is for {len(other.bounds)} features, and there are {len(one.bounds)}."
            raise PlanError(what, suggest=("plan with ", Argument("features", ["age", "schooling"])))
        pinned = replace(row.pin_options(options, mechanism), share=row.share)
        return _answer(asked, values, roster, pinned, note).about(roster.covered)

    assert options.share is not None
    made = Plan.make(question, roster.levels, options.share, options.settings, options.mechanism, ask_row)
    return made if error is None else made.reaching(error)


@dataclass(frozen=True)
class Prepared:
    """A question with the mechanism that is to serve it, why that one, the people it may use and what they pay."""

    mechanism: Mechanism
    why: str
    question: Question
    people: ArrayPeople
    account: Account


def prepare(statistic: Any, values: Any, epsilons: Any, arguments: Mapping[str, Any]) -> Prepared:
    """A question as it would be answered, without an answer: for simulations, distributions and audits.

    Of a model the values are a pair: features and targets.
    """
    entry = find_statistic(statistic)
    if entry.model and not (isinstance(values, tuple) and len(values) == 2):
        raise PlanError("A model has two kinds of values.", suggest="a pair (X, y) of features and targets")
    call = read_call(entry, ARRAYS, (*values, epsilons) if entry.model else (values, epsilons), arguments)
    groups, granted = _groups(call.options, epsilons)
    values, own = _values(entry, call.data, call.own)
    asked, _ = _question(entry, own, call.options, groups, BY_TYPE if _is_whole(entry, call.data) else "")
    roster = aligned_roster(granted, values)
    if roster.levels.all_public:
        raise PlanError("Everyone is public.", rule="Answers are exact: there is no noise to look at.")
    return _prepare(asked, values, roster, call.options)


def _answer(question: Question, values: Any, roster: Roster, options: AskOptions, note: str) -> Release:
    if roster.levels.all_public:
        people = ArrayPeople.of(values, roster)
        question.statistic.check_people(roster.levels)
        return exact_release(question, people, (note,))
    source = system() if options.entropy is None else options.entropy
    made = _prepare(question, values, roster, options)
    return make_release(made.mechanism, made.question, made.people, source, made.why, (note,), made.account)


def _prepare(question: Question, values: Any, roster: Roster, options: AskOptions) -> Prepared:
    people, granted, share = ArrayPeople.of(values, roster), roster.levels, options.share
    question.statistic.check_people(granted)
    assert share is not None
    rate = None if options.delta is None else question.rate
    whole = share == 1 and rate is None
    if not whole:  # only people who have something to spend at this share; nobody looks at the others
        question = scale_question(question, share)
        scaled, used = roster.take_share(share, rate)
        if scaled.levels.all_public:
            raise nobody_left(share)
        people = ArrayPeople(people.values if used is None else people.values[used], scaled)
    levels, name = people.levels, options.mechanism
    # A mechanism that is asked for by name needs no planner.
    chosen, why = (choose if name == "auto" else take_named)(name, question, levels, options.settings)
    account = Account.of(levels, charges_of(chosen, question, levels))
    account = account if whole else account.at_share(granted, share, rate)
    return Prepared(chosen, why, question, people, account)


def _is_whole(entry: Entry, data: Mapping[str, Any]) -> bool:
    """Whether nothing can be missing, by type. Whoever is of neither class adds nothing: classes have to be truths."""
    if entry.model and entry.text:
        return never_missing(data["X"]) and getattr(getattr(data["y"], "dtype", None), "kind", "") == "b"
    return all(never_missing(data[name]) for name in (("X", "y") if entry.model else ("values",)))


def never_missing(values: Any) -> bool:
    """Whether the declared type has no missing values: whole numbers and truths of numpy, in pandas too.

    All other types have some: nulls, NaN or masks. What declares nothing is not looked at.
    """
    if isinstance(values, np.ma.MaskedArray):
        return False
    kinds = getattr(values, "dtypes", ()) if hasattr(values, "columns") else [getattr(values, "dtype", None)]
    return len(kinds) > 0 and all(isinstance(kind, np.dtype) and kind.kind in "biu" for kind in kinds)


def _values(entry: Entry, data: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """(values or rows, the statistic's arguments): a model's features are called as the columns of a frame."""
    if not entry.model:
        return data["values"], own
    if entry.pair:
        return Rows.of_two(data["X"], data["y"]), own
    X, public = data["X"], own["bounds_X"]
    if isinstance(public, Mapping):
        check_order(X, public)
        return Rows.pair(X, data["y"], partial(spread_words, bounds=public)), own
    rows = Rows.pair(X, data["y"])
    return rows, {**own, "features": feature_names(X, own["features"], rows.features.shape[1])}


def _question(
    entry: Entry, own: Mapping[str, Any], options: AskOptions, groups: tuple[int, ...], declared: str = ""
) -> tuple[Question, str]:
    """(the question, what its answer says of missing values)."""
    rows = RowScope(neighbors=options.neighbors, unbounded=options.privacy != "personalized")
    over, note = rows.asked(entry, options, declared)
    return Question.of(entry.build(own, over), options, options.neighbors, groups), note


def _groups(options: AskOptions, epsilons: Any) -> tuple[tuple[int, ...], Any]:
    """(for group privacy the nano-epsilons of groups of 1, 2, ... people, the epsilons that people grant)."""
    if options.privacy != "group":
        if options.group_epsilons is not None:
            read_groups(options)  # refuses them
        if epsilons is None:
            raise PreferenceError("There are no epsilons.", rule="One per person.", suggest=Argument("epsilons", 0.5))
        return (), epsilons
    return take_groups(epsilons, options.group_epsilons)
