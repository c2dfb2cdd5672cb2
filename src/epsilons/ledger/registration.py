"""Registering a dataset: terms, unit, levels, roster and the registration itself, in one transaction or not at all.

A registration is an act of the steward. It says what it does in numbers of people, and what would give many people new
budgets, or anyone less privacy than before, is done only if the steward has said that very thing.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from numpy.typing import NDArray

from epsilons.display import show_count
from epsilons.errors import Argument, LedgerError, Text
from epsilons.ledger import journal, paths, renewal, roster
from epsilons.ledger.checks import is_whole
from epsilons.ledger.consent import PUBLIC_CODE, Settled, Word, by_source, rank_openness
from epsilons.ledger.order import Sorted
from epsilons.ledger.statements import read_terms
from epsilons.ledger.values import Enrolment, Registration, Terms, stale_plan
from epsilons.measure import PLAIN, Measure
from epsilons.preferences import to_nano
from epsilons.storage.base import Connection

#: More newcomers than this part, once a ledger knows people, may well be the same people named otherwise.
MANY_NEW = Fraction(1, 10)


@dataclass(frozen=True, eq=False)
class Application:
    """What is to be registered: `words[asked[i]]` is what `people[i]` asked for, `levels` what names mean (codes).

    `about` and `stamp` are plain values; `about["source"]` tells the state of the source, if that can be told. Its rows
    were labelled by what was `foreseen`: where something else comes of it in the end, they have the wrong cohorts.
    """

    name: str
    version: str
    about: Mapping[str, Any]
    stamp: Mapping[str, Any]
    terms: Terms
    people: Sorted
    asked: NDArray[Any]
    words: Sequence[Word]
    levels: Mapping[str, int]
    defaulted: int = 0
    unmatched: int = 0
    confirm: bool = False
    loosen: int | None = None
    redefine: bool = False
    foreseen: "Outlook | None" = None


def settle_terms(connection: Connection, at: str, asked: Terms, person: str = "id") -> None:
    """Fix the terms for the life of the ledger; the same ones again are fine, others are refused."""
    held = read_terms(connection)
    if held is None:
        fixed = {name: getattr(asked, name) for name in ("neighbors", "rows_per_person", "measure")}
        row = {**fixed, "allow_individual": int(asked.allow_individual)}
        _settle(connection, "terms", at, row)
    else:
        for refused in _object_to_terms(held, asked, person):
            raise refused
    if asked.ids is not None and (held is None or held.ids is None):
        _settle(connection, "unit", at, {"ids": asked.ids, "spelling": asked.spelling})


def _object_to_terms(held: Terms, asked: Terms, person: str) -> Iterator[LedgerError]:
    """Refuse other terms than those that were settled; `person` is the column of ids."""
    if not agree(held, asked):
        rule = "Neighbours, measure and individual privacy are fixed for the life of a ledger."
        counted = held.counted
        shown = {name: value for name, value in asdict(held).items() if value is not None} | {"measure": counted.name}
        shown |= {} if counted.delta is None else {"delta": float(counted.delta)}
        first, *others = (Argument(name, value) for name, value in shown.items() if name not in ("ids", "spelling"))
        settled = (first, *(part for other in others for part in (", ", other)))
        yield LedgerError("This ledger was created under other terms.", rule=rule, suggest=settled)
    if asked.ids is not None and held.ids is not None and (held.ids, held.spelling) != (asked.ids, asked.spelling):
        rule = f"People are known here by ids that are {held.ids}; 1 and '1' are two people."
        kind, plural = ("int", "numbers") if held.ids == "number" else ("text", "texts")
        hint = (f"a source whose column of ids holds {plural}; of a CSV file, ", Argument("types", {person: kind}))
        yield LedgerError("This ledger's people have ids of another kind.", rule=rule, suggest=hint)


def _settle(connection: Connection, kind: str, at: str, settled: dict[str, Any]) -> None:
    connection.execute(f"UPDATE ledger SET {', '.join(f'{name} = :{name}' for name in settled)}", settled)
    journal.append(connection, kind, at, settled)


def agree(held: Terms, asked: Terms) -> bool:
    """Whether these are the terms that were settled; rows per person are a dataset's own unless a ledger has them."""
    rows = held.rows_per_person if asked.rows_per_person is None else asked.rows_per_person
    return replace(asked, rows_per_person=rows, ids=held.ids, spelling=held.spelling) == held


def read_levels(connection: Connection) -> dict[str, int]:
    """What names of levels mean now, as codes."""
    found = connection.execute("SELECT name, granted FROM levels ORDER BY seq")
    return {name: PUBLIC_CODE if granted is None else granted for name, granted in found}


def read_settled(connection: Connection, at: str) -> Settled:
    """What words are held to: meanings and periods of levels, and of every dataset the ceiling registered last."""
    newest, held = {one.dataset: one for one in list_newest(connection)}, read_terms(connection)
    measure = PLAIN if held is None else held.counted
    ceilings = dict(_read_ceilings({number: one.about for number, one in newest.items()}, measure))
    names, periods = {number: one.name for number, one in newest.items()}, _read_periods(newest.values())
    return Settled(read_levels(connection), ceilings, names, measure, periods, renewal.read_labels(connection, at))


def _read_periods(past: Iterable[Registration]) -> dict[str, str]:
    """The period of every level that has one, in all datasets."""
    return {level: period for one in past for level, period in one.about.get("renews", {}).items()}


def _read_ceilings(about: Mapping[int, Mapping[str, Any]], measure: Measure) -> Iterator[tuple[int, int]]:
    for dataset, settled in about.items():
        ceiling = to_nano(settled.get("ceiling", math.inf))
        if ceiling is not None:
            yield dataset, measure.units(ceiling)


def list_registrations(connection: Connection) -> tuple[Registration, ...]:
    """Every registration, in its order."""
    return _read_registrations(connection, "number > 0", {})


def list_newest(
    connection: Connection, name: str | None = None, version: str | None = None
) -> tuple[Registration, ...]:
    """The newest registration of every dataset, or of one, or of a version of it: however many there were."""
    given = {key: value for key, value in (("name", name), ("version", version)) if value is not None}
    only = f"WHERE {' AND '.join(f'{key} = :{key}' for key in given)}" if given else ""
    return _read_registrations(
        connection, f"number IN (SELECT max(number) FROM registrations {only} GROUP BY name)", given
    )


def _read_registrations(connection: Connection, which: str, values: Mapping[str, str]) -> tuple[Registration, ...]:
    names = "number, dataset, name, version, epoch, seq, at, about, stamp"
    found = connection.execute(f"SELECT {names} FROM registrations WHERE {which} ORDER BY number", values)
    return tuple(
        Registration(**{**row, "about": json.loads(row["about"]), "stamp": json.loads(row["stamp"])}) for row in found
    )


def keep_paths(connection: Connection, found: Iterable[Registration], home: str) -> dict[str, Any]:
    """Files that lie where they did, from where the ledger lies now; what its journal says of that."""
    changed = {}
    for one in found:
        kept = paths.keep(one, home)
        about, stamp = journal.to_json(kept.about), journal.to_json(kept.stamp)
        row = {"number": one.number, "about": about, "stamp": stamp}
        differs = "number = :number AND (about <> :about OR stamp <> :stamp)"
        if connection.execute(f"SELECT 1 FROM registrations WHERE {differs}", row).fetchone() is not None:
            connection.execute("UPDATE registrations SET about = :about, stamp = :stamp WHERE number = :number", row)
            changed[one.name] = _digest(about, stamp)
    return {"registrations": changed} if changed else {}


def _digest(about: str, stamp: str) -> dict[str, str]:
    """What the journal has of a registration."""
    return {"about": hashlib.sha256(about.encode()).hexdigest(), "stamp": hashlib.sha256(stamp.encode()).hexdigest()}


@dataclass(frozen=True, eq=False)
class Outlook:
    """What a registration would do to people, and what it is refused for until the steward says it.

    `expected` is what becomes of them if nobody's epsilon is made larger, `change` what would be done as it is asked.
    It holds for as long as `line` is the last one of the journal. `unsure`: the steward's word is needed that these are
    the right people.
    """

    line: int
    number: int
    dataset: int
    before: Mapping[str, int]
    levels: Mapping[str, int]
    expected: Enrolment
    change: roster.Change
    newcomers: int
    objections: tuple[LedgerError, ...]
    unsure: bool


def foresee(connection: Connection, given: Application, at: str) -> Outlook:
    """Look ahead and write nothing: what it would be refused for is said, first what no word of the steward allows."""
    past, held = list_newest(connection), read_terms(connection)
    mine = next((one for one in past if one.name == given.name), None)
    same = next(iter(list_newest(connection, given.name, given.version)), None)
    objections = [*_object_to_unit(mine, given), *_object_to_version(same, given)]
    objections += [] if held is None else _object_to_terms(held, given.terms, given.about["person"])
    number, (line, _) = 1 + max((one.number for one in past), default=0), journal.head(connection)
    dataset = mine.dataset if mine else number
    before = read_levels(connection)
    levels = {**before, **given.levels}
    measure = given.terms.counted
    ceilings = dict(_read_ceilings({one.dataset: one.about for one in past} | {dataset: given.about}, measure))
    periods, wanted = _read_periods(past), given.about.get("renews", {})
    objections += _object_to_periods(given, before, periods, wanted)
    labels = renewal.read_labels(connection, at)
    decide = partial(by_source, dataset, Settled(levels, ceilings, {}, measure, {**periods, **wanted}, labels))
    request = roster.Request(given.people, given.asked, given.words, decide(False), dataset, everyone=True)
    change = roster.plan_change(connection, request)
    lowered = change.count_lowered()
    told = (f"{show_count(lowered, 'own word')} above the ceiling; brought down to it",) if lowered else ()
    expected = replace(change.enrolment, defaulted=given.defaulted, unmatched=given.unmatched, settled=told)
    # Under whatever names: a ledger's people are those of all its datasets.
    newest = {one.name: one.about.get("newcomers", 0) for one in past}
    newcomers = expected.joined + sum(newest.values())
    unconfirmed = expected.joined + newest.get(given.name, 0)
    known = bool(connection.execute("SELECT sum(people) FROM cohorts").fetchone()[0])
    objections += _object_to_redefining(given, before, [one.name for one in past if one.name != given.name])
    older = held is not None and held.ids is None
    unsure = [*_object_to_newcomers(given, expected, newcomers, older)] if known else []
    unsure += _object_to_unmatched(given, expected)
    objections += _object_to_loosening(given, expected, before, levels, bool(unsure))
    objections += unsure
    kept = unconfirmed if known and not given.confirm else 0
    if given.loosen:
        change = roster.plan_change(connection, replace(request, decide=decide(True)))
    done = replace(change.enrolment, defaulted=given.defaulted, unmatched=given.unmatched)
    change = replace(change, enrolment=done)
    return Outlook(line, number, dataset, before, levels, expected, change, kept, tuple(objections), bool(unsure))


def register(connection: Connection, at: str, given: Application) -> tuple[Registration, Enrolment]:
    """Carry it out and say what happened."""
    ahead = given.foreseen
    if ahead is None or ahead.line != journal.head(connection)[0]:
        ahead = foresee(connection, given, at)
        if given.foreseen is not None and not ahead.change.goes_as(given.foreseen.change):
            raise stale_plan()
    for refused in ahead.objections:
        raise refused
    settle_terms(connection, at, given.terms, given.about["person"])
    done = roster.carry_out(connection, at, ahead.change)
    mine = list_newest(connection, given.name)
    renews = {**_read_periods(mine), **given.about.get("renews", {})}
    counted = {name: number for name, number in asdict(done).items() if name != "settled" and number}
    settled = {**given.about, "newcomers": ahead.newcomers, "enrolment": counted}
    settled |= {"renews": renews} if renews else {}
    about, stamp = journal.to_json(settled), journal.to_json(given.stamp)
    changed = {name: code for name, code in ahead.levels.items() if ahead.before.get(name) != code}
    if changed:
        granted = {name: None if code == PUBLIC_CODE else code for name, code in changed.items()}
        seq, _ = journal.append(connection, "levels", at, {"levels": granted})
        connection.insert_many("levels", [(name, seq, code) for name, code in granted.items()])
    line: dict[str, Any] = {"number": ahead.number, "dataset": ahead.dataset, "epoch": done.epoch}
    line |= {"name": given.name, "version": given.version}
    seq, _ = journal.append(connection, "register", at, {**line, **_digest(about, stamp)})
    row = {**line, "seq": seq, "at": at, "about": about, "stamp": stamp}
    names = "number, dataset, name, version, seq, epoch, at, about, stamp"
    connection.execute(f"INSERT INTO registrations VALUES (:{names.replace(', ', ', :')})", row)
    return Registration(**line, seq=seq, at=at, about=settled, stamp=given.stamp), done


def _object_to_unit(mine: Registration | None, given: Application) -> Iterator[LedgerError]:
    """Whose row it is, and how many rows of a person are used, stays: other people would have new budgets."""
    for name in ("person", "rows_per_person"):
        if mine and mine.about[name] != given.about[name]:
            what = f"{given.name!r} was registered with {'other people' if name == 'person' else 'another cap'}."
            rule = "Whose row it is, and how many of a person are used, is settled once for every dataset."
            yield LedgerError(what, rule=rule, suggest=Argument(name, mine.about[name]))


#: Besides the rows, what is part of every question: where it changes, a question is another one, and charged anew.
_IN_QUESTIONS = {"complete": "other complete columns", "preference": "another column of preferences"}


def same_state(held: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether the same questions would find the same answers: one state of the rows, and of what is part of them."""
    alike = all(held.get(name) == given.get(name) for name in ("source", *_IN_QUESTIONS))
    return alike and given["source"] is not None


def _object_to_version(same: Registration | None, given: Application) -> Iterator[LedgerError]:
    """One label, one state: stored answers go by it."""
    if same and not same_state(same.about, given.about):
        before, now = same.about["source"], given.about["source"]
        bare = [{k: v for k, v in one.items() if k not in ("types", "dialect")} for one in (before, now) if one]
        rows = len(bare) == 2 and bare[0] == bare[1]
        typed = ["other types of columns"] if rows and before["types"] != now["types"] else []
        typed += ["another dialect"] if rows and before.get("dialect") != now.get("dialect") else []
        other = [told for name, told in _IN_QUESTIONS.items() if same.about.get(name) != given.about.get(name)]
        why = f"with {' and '.join(typed + other)}" if rows else "and the source may hold other rows"
        what = f"Version {given.version!r} of {given.name!r} is registered already, {why}."
        rule = "A version stands for one state of the data, since stored answers go by it."
        yield LedgerError(what, rule=rule, suggest=Argument("version", f"{given.version}, revised"))


def _object_to_redefining(given: Application, before: Mapping[str, int], others: list[str]) -> Iterator[LedgerError]:
    """People have one account for all datasets: what a level means is settled for all of them, or by an act for all."""
    changed = [name for name, code in given.levels.items() if before.get(name, code) != code]
    if changed and others and not given.redefine:
        measure, levels = given.terms.counted, given.levels
        shown = [(name, _show(before[name], measure), _show(levels[name], measure)) for name in changed]
        told = [f"{name!r} is {there} there, {here} here" for name, there, here in shown]
        what = f"Levels mean something else in this ledger: {', '.join(told)}."
        also = ", ".join(dict.fromkeys(others))
        rule = f"A level means the same in all datasets of a ledger; this one also has {also}."
        meant = {**given.levels, **{name: before[name] for name in changed}}
        held = {name: "public" if code == PUBLIC_CODE else measure.grant(code) for name, code in meant.items()}
        hint = (Argument("levels", held), "; or other names; if they shall mean this in all of them, ")
        yield LedgerError(what, rule=rule, suggest=(*hint, Argument("redefine", True)))


def _object_to_periods(
    given: Application, before: Mapping[str, int], periods: Mapping[str, str], wanted: Mapping[str, str]
) -> Iterator[LedgerError]:
    """Whoever has a level chose it as it was: nothing is renewed that was granted for good, nor the other way."""
    for level in (one for one in given.levels if one in before and periods.get(one) != wanted.get(one)):
        held = f"is renewed each {periods[level]}" if level in periods else "is granted for good"
        rule = "Whether a level is renewed is part of what people chose with its name."
        hint = ("another name for it, which people can choose; or ", Argument("renews", dict(periods) or None))
        yield LedgerError(f"Level {level!r} {held} in this ledger.", rule=rule, suggest=hint)


def _object_to_loosening(
    given: Application, expected: Enrolment, before: Mapping[str, int], levels: Mapping[str, int], unsure: bool
) -> Iterator[LedgerError]:
    """Nobody's word is loosened but by an act that names how many people it concerns."""
    number, own = expected.pending, expected.pending_own
    raised = [name for name in before if rank_openness(levels[name]) > rank_openness(before[name])]
    rule = "What lets people lose more than before is done only if you name their number."
    also = (" and ", Argument("confirm", True)) if unsure else ()
    hint: Text = (Argument("loosen", number), *also, ", or everything as it was")
    hint = hint if number or raised else ("leave ", Argument("loosen"), " out")
    against = f" {own:,} of them said something stricter themselves." if own else ""
    if given.loosen is not None and (not is_whole(given.loosen, 0, 1 << 62) or given.loosen != number):
        who = show_count(number, "person", "people")
        yield LedgerError(f"{who} would have a larger epsilon than before.{against}", rule=rule, suggest=hint)
    if raised and given.loosen is None:
        measure = given.terms.counted
        told = [f"{name!r} {_show(before[name], measure)} → {_show(levels[name], measure)}" for name in raised]
        what = f"Levels would mean more than before ({', '.join(told)}), for {show_count(number, 'person', 'people')}."
        yield LedgerError(what + against, rule=rule, suggest=hint)


def _show(code: int, measure: Measure) -> str:
    return "public" if code == PUBLIC_CODE else f"{measure.grant(code):g}"


def _object_to_newcomers(given: Application, expected: Enrolment, newcomers: int, older: bool) -> Iterator[LedgerError]:
    """The same people named otherwise would have new budgets: many newcomers need the steward's word.

    Many at once, or little by little: who joined a dataset since the last registration that was confirmed counts, too.
    """
    listed, before = expected.known + expected.joined, newcomers - expected.joined
    counted = f"Of {listed:,} people, {expected.joined:,} are new to this ledger and {expected.known:,} known."
    if older and expected.known < (1 - MANY_NEW) * listed:
        rule = "A ledger of an older release takes over a table of which it knows nine in ten people."
        yield LedgerError(counted, rule=rule, suggest="the table and the ids that it was made with, or a new ledger")
        return
    many = expected.known == 0 or (expected.joined > 0 and newcomers > MANY_NEW * listed)
    if many and not given.confirm:
        counted += f" Another {before:,} joined before them, unconfirmed." if before else ""
        rule = "The same people named otherwise would have new budgets."
        sure = ("look at the ids; if these people are new, ", Argument("confirm", True))
        yield LedgerError(counted, rule=rule, suggest=sure)


def has_many_unmatched(done: Enrolment) -> bool:
    """Whether so many preferences name nobody that every registration of them needs the steward's word."""
    return done.unmatched > MANY_NEW * max(_count_preferences(done), 1)


def _count_preferences(done: Enrolment) -> int:
    return done.known + done.joined - done.defaulted


def _object_to_unmatched(given: Application, expected: Enrolment) -> Iterator[LedgerError]:
    """Preferences that name nobody may well be those of people whose ids are written otherwise."""
    if not given.confirm and has_many_unmatched(expected):
        asked = _count_preferences(expected)
        what = f"{show_count(expected.unmatched, 'preference')} of {asked:,} name nobody in the data."
        rule = "Ids that are written otherwise would leave people at the default."
        absent = ("ids as they stand in the data; if these people have no rows, ", Argument("confirm", True))
        yield LedgerError(what, rule=rule, suggest=absent)
