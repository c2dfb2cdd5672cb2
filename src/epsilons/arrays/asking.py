"""One question on arrays: check, choose a mechanism, draw; and its plan, which can be asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from epsilons.arguments.checks import check_whole
from epsilons.arguments.options import ARRAYS
from epsilons.arguments.reading import AskOptions, Call, both_given, read_call, read_plan, take_places
from epsilons.calls import name_statistic
from epsilons.errors import PlanError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Charges, Mechanism, Settings, take_named
from epsilons.noise.entropy import system
from epsilons.planner.choose import choose
from epsilons.planner.plan import Plan, nobody_left, scale_question
from epsilons.planner.rows import PlanRow
from epsilons.preferences import Levels, Roster, aligned_roster, roster_of
from epsilons.release import Release, exact_release, make_release
from epsilons.release.answer import Account
from epsilons.statistics.base import Question
from epsilons.statistics.catalogue import find_statistic
from epsilons.statistics.entry import EVERYONE, Entry
from epsilons.statistics.features import feature_names
from epsilons.statistics.regression import Regression
from epsilons.summaries.people import ArrayPeople
from epsilons.summaries.rows import Rows


def make_function(entry: Entry) -> Callable[..., Release]:
    """The function on arrays that asks for a statistic of the catalogue."""

    def question(*given: Any, **named: Any) -> Release:
        return ask(read_call(entry, ARRAYS, given, named))

    name_statistic(entry, ARRAYS, question, "", Release)
    return question


def ask(call: Call) -> Release:
    """One release of any statistic at a share of everybody's epsilon."""
    entry, options, data = call.entry, call.options, dict(call.data)
    epsilons = data.pop("epsilons")
    groups = _groups(options, epsilons)
    values, own = _values(entry, data, call.own)
    question = _question(entry, own, options, groups)
    return _answer(question, values, aligned_roster(_granted(epsilons, groups), values), options)


def make_plan(statistic: Any, epsilons: Any, arguments: Mapping[str, Any]) -> Plan:
    """The plan of a question; see `eps.plan`."""
    given = dict(arguments)
    error, people = given.pop("error", None), given.pop("people", None)
    entry = find_statistic(statistic)
    if error is not None and given.get("share") is not None:
        raise both_given()
    people = None if people is None else _check_people(people)
    call = read_plan(entry, ARRAYS, given)
    options = call.options
    groups = _groups(options, epsilons)
    question = _question(entry, call.own, options, groups)
    roster = roster_of(_granted(epsilons, groups), people=people)
    if people is not None and people != len(roster):
        raise PlanError(
            f"{people} people and {len(roster)} epsilons.", suggest="leave people= out, or one epsilon for all"
        )
    if roster.levels.all_public:
        raise PlanError("There is nothing to plan.", rule="Everyone is public (or nobody is there): answers are exact.")

    def ask_row(row: PlanRow, mechanism: str, data: Sequence[Any], named: Mapping[str, Any]) -> Release:
        """The row as it was shown, with the values of the people it was planned for."""
        values, own = _values(entry, _data_of(entry, data, named), call.own)
        asked = _question(entry, own, options, groups)
        _check_shape(asked, question)
        return _answer(asked, values, roster, replace(row.options_of(options, mechanism), share=row.share))

    assert options.share is not None
    settings = Settings(**options.settings)
    made = Plan.make(question, roster.levels, options.share, settings, options.mechanism, ask_row)
    return made if error is None else made.reaching(error)


def _answer(question: Question, values: Any, roster: Roster, options: AskOptions) -> Release:
    people, levels = ArrayPeople.of(values, roster), roster.levels
    question.statistic.check_people(levels)
    if levels.all_public:
        return exact_release(question, people)
    source = system() if options.entropy is None else options.entropy
    settings, share = Settings(**options.settings), options.share
    assert share is not None
    if share == 1:
        chosen, why = _take(options.mechanism, question, levels, settings)
        return make_release(chosen, question, people, source, why)
    question = scale_question(question, share)
    used = _use_share(people, share)
    chosen, why = _take(options.mechanism, question, used.roster.levels, settings)
    account = _share_account(levels, share, used.levels, chosen.charge(question, used.levels))
    return make_release(chosen, question, used, source, why, account=account)


def _use_share(people: ArrayPeople, share: Fraction) -> ArrayPeople:
    """The people who have something to spend at this share; nobody looks at the others."""
    roster, used = people.roster.scaled(share)
    if roster.levels.all_public:
        raise nobody_left(share)
    return ArrayPeople(people.values if used.all() else people.values[used], roster)


def _share_account(levels: Levels, share: Fraction, used: Levels, charges: Charges) -> Account:
    """Charges by what people granted, not by the share of it that was used; whoever was left out pays nothing."""
    spent = dict(zip(used.grants, charges, strict=True))
    parts = [None if grant is None else math.floor(grant * share) for grant in levels.grants]
    losses = [None if part is None else spent.get(part, 0) for part in parts]
    return Account.of(levels, tuple(losses))


# Data and epsilons --------------------------------------------------------------------------------------------------


def _values(entry: Entry, data: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """(values or rows, the statistic's arguments): a model's features are called as the columns of a frame."""
    if not entry.model:
        return data["values"], own
    rows = Rows.pair(data["X"], data["y"])
    return rows, {**own, "features": feature_names(data["X"], own["features"], rows.features.shape[1])}


def _data_of(entry: Entry, data: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan is asked with: the values, or a model's X and y; all else was planned."""
    wanted = ("X", "y") if entry.model else ("values",)
    hint = f"plan.ask({', '.join(wanted)})"
    found = take_places("plan.ask", wanted, wanted, data, named, hint)
    strange = [name for name in found if name not in wanted]
    if strange:
        raise PlanError(f"plan.ask takes no {strange[0]!r}.", rule="It asks what was planned.", suggest=hint)
    return found


def _check_shape(asked: Question, planned: Question) -> None:
    """A model of more features than were planned would err more than the plan says."""
    one, other = asked.statistic, planned.statistic
    if isinstance(one, Regression) and isinstance(other, Regression) and len(one.bounds) != len(other.bounds):
        raise PlanError(
            f"This plan is for {len(other.bounds)} features, and there are {len(one.bounds)}.",
            suggest='eps.plan(..., features=["age", "schooling"])',
        )


def _question(entry: Entry, own: Mapping[str, Any], options: AskOptions, groups: tuple[int, ...]) -> Question:
    over = replace(EVERYONE, neighbors=options.neighbors, unbounded=options.privacy != "personalized")
    return Question.of(entry.build(own, over), options, options.neighbors, groups)


def _granted(epsilons: Any, groups: tuple[int, ...]) -> Any:
    return to_epsilon(groups[0]) if groups else epsilons


def _groups(options: AskOptions, epsilons: Any) -> tuple[int, ...]:
    """For group privacy the epsilons of groups of 1, 2, ... people, which take the place of personal ones."""
    if options.privacy != "group":
        if options.group_epsilons is not None:
            raise PlanError("group_epsilons go with group privacy.", suggest='privacy="group"')
        if epsilons is None:
            raise PreferenceError(
                "There are no epsilons.", rule="One per person.", suggest="eps.count(values, epsilons)"
            )
        return ()
    if epsilons is not None or options.group_epsilons is None:
        raise PlanError(
            "Group privacy takes group_epsilons instead of epsilons.",
            rule="The i-th one holds for groups of i people.",
            suggest='eps.median(values, privacy="group", group_epsilons=[1.0, 0.5], bounds=(0, 100))',
        )
    grants = roster_of(options.group_epsilons)
    if len(grants) == 0 or None in grants.levels.grants:
        raise PreferenceError("Group epsilons are finite numbers, at least one.", suggest="group_epsilons=[1.0, 0.5]")
    return tuple(grants.levels.grants[code] or 0 for code in grants.codes)


def _take(name: str, question: Question, levels: Levels, settings: Settings) -> tuple[Mechanism, str]:
    """(mechanism, why); one that is asked for by name needs no planner."""
    return (choose if name == "auto" else take_named)(name, question, levels, settings)


def _check_people(people: Any) -> int:
    try:
        return check_whole(people)
    except TypeError:
        raise PlanError(
            f"people={people!r} is not allowed.", rule="A whole number from 1.", suggest="people=1000"
        ) from None
