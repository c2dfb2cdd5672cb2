"""Registering a dataset: terms, unit, levels, roster and the registration itself, in one transaction or not at all.

A registration is an act of the steward. It says what it does in numbers of people, and what would give many people new
budgets, or anyone less privacy than before, is done only if the steward has said that very thing.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.display import show_count
from epsilons.errors import Argument, LedgerError, Text
from epsilons.guarantee import to_epsilon
from epsilons.ledger import journal, roster
from epsilons.ledger.checks import Sorted, is_whole
from epsilons.ledger.consent import PUBLIC_CODE, Word, by_source, rank_openness
from epsilons.ledger.statements import read_terms
from epsilons.ledger.values import Enrolment, Registration, Terms
from epsilons.storage.base import Connection

#: More newcomers than this part, once a ledger knows people, may well be the same people named otherwise.
MANY_NEW = Fraction(1, 10)


@dataclass(frozen=True, eq=False)
class Application:
    """What is to be registered: `words[asked[i]]` is what `people[i]` asked for, `levels` what names mean (codes).

    `about` and `stamp` are plain values; `about["source"]` tells the state of the source, if that can be told.
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


def settle_terms(connection: Connection, at: str, asked: Terms) -> None:
    """Fix the terms for the life of the ledger; the same ones again are fine, others are refused."""
    held = read_terms(connection)
    fixed = {"neighbors": asked.neighbors, "allow_individual": int(asked.allow_individual), "measure": asked.measure}
    if held is None:
        _settle(connection, "terms", at, {**fixed, "rows_per_person": asked.rows_per_person})
    elif not agree(held, asked):
        rule = "Neighbours, measure and individual privacy are fixed for the life of a ledger."
        shown = {name: value for name, value in asdict(held).items() if value is not None}
        first, *others = (Argument(name, value) for name, value in shown.items() if name not in ("ids", "spelling"))
        settled = (first, *(part for other in others for part in (", ", other)))
        raise LedgerError("This ledger was created under other terms.", rule=rule, suggest=settled)
    unit = {"ids": asked.ids, "spelling": asked.spelling}
    if asked.ids is None or (held is not None and held.ids == asked.ids and held.spelling == asked.spelling):
        return
    if held is not None and held.ids is not None:
        rule = f"People are known here by ids that are {held.ids}; 1 and '1' are two people."
        hint = (Argument("types", {"id": "int" if held.ids == "number" else "text"}), " for ids in a CSV file")
        raise LedgerError("This ledger's people have ids of another kind.", rule=rule, suggest=hint)
    _settle(connection, "unit", at, unit)


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


def list_registrations(connection: Connection) -> tuple[Registration, ...]:
    """Every registration, in its order."""
    found = "SELECT number, dataset, name, version, epoch, at, about, stamp FROM registrations ORDER BY number"
    return tuple(
        Registration(**{**row, "about": json.loads(row["about"]), "stamp": json.loads(row["stamp"])})
        for row in connection.execute(found)
    )


def find_registration(connection: Connection, name: str) -> Registration | None:
    """The newest registration of a dataset."""
    return next((one for one in reversed(list_registrations(connection)) if one.name == name), None)


def register(
    connection: Connection, at: str, given: Application, preview: bool = False
) -> tuple[Registration, Enrolment]:
    """Carry it out and say what happened; a preview refuses nothing that a word of the steward allows."""
    past = list_registrations(connection)
    mine = [one for one in past if one.name == given.name]
    _check_unit(mine, given)
    _check_version(mine, given)
    held = read_terms(connection)
    other = held is not None and (not agree(held, given.terms) or held.ids not in (None, given.terms.ids))
    if not preview or other:  # a preview writes nothing: this refuses
        settle_terms(connection, at, given.terms)
    number = len(past) + 1
    dataset = mine[0].dataset if mine else number
    before = read_levels(connection)
    levels = {**before, **given.levels}
    raised = [name for name in before if rank_openness(levels[name]) > rank_openness(before[name])]
    request = roster.Request(
        given.people, given.asked, given.words, by_source(dataset, levels, False), dataset, everyone=True
    )
    expected = roster.change(connection, at, request, preview=True)
    if not preview:
        _check_loosening(given, expected, raised, before, levels)
        _check_newcomers(connection, given, expected, older=held is not None and held.ids is None)
    if given.loosen:
        request = replace(request, decide=by_source(dataset, levels, True))
    done = roster.change(connection, at, request, preview=preview)
    done = replace(done, defaulted=given.defaulted, unmatched=given.unmatched)
    about, stamp = journal.to_json(given.about), journal.to_json(given.stamp)
    made = Registration(number, dataset, given.name, given.version, done.epoch, at, given.about, given.stamp)
    if preview:
        return made, done
    changed = {name: code for name, code in levels.items() if before.get(name) != code}
    if changed:
        granted = {name: None if code == PUBLIC_CODE else code for name, code in changed.items()}
        seq, _ = journal.append(connection, "levels", at, {"levels": granted})
        connection.insert_many("levels", [(name, seq, code) for name, code in granted.items()])
    line = {"number": number, "dataset": dataset, "name": given.name, "version": given.version, "epoch": done.epoch}
    digests = {"about": hashlib.sha256(about.encode()).hexdigest(), "stamp": hashlib.sha256(stamp.encode()).hexdigest()}
    seq, _ = journal.append(connection, "register", at, {**line, **digests})
    row = {**line, "seq": seq, "at": at, "about": about, "stamp": stamp}
    names = "number, dataset, name, version, seq, epoch, at, about, stamp"
    connection.execute(f"INSERT INTO registrations VALUES (:{names.replace(', ', ', :')})", row)
    return made, done


def _check_unit(mine: Sequence[Registration], given: Application) -> None:
    """Whose row it is, and how many rows of a person are used, stays: other people would have new budgets."""
    for name in ("person", "rows_per_person"):
        if mine and mine[-1].about[name] != given.about[name]:
            what = f"{given.name!r} was registered with {'other people' if name == 'person' else 'another cap'}."
            rule = "Whose row it is, and how many of a person are used, is settled once for every dataset."
            raise LedgerError(what, rule=rule, suggest=Argument(name, mine[-1].about[name]))


def _check_version(mine: Sequence[Registration], given: Application) -> None:
    """One label, one state of the rows: stored answers go by it."""
    same = [one for one in mine if one.version == given.version]
    if same and (given.about["source"] is None or same[-1].about["source"] != given.about["source"]):
        what = f"Version {given.version!r} of {given.name!r} is registered already, and the source may hold other rows."
        rule = "A version stands for one state of the rows, since stored answers go by it."
        raise LedgerError(what, rule=rule, suggest=Argument("version", f"{given.version}, revised"))


def _check_loosening(
    given: Application, expected: Enrolment, raised: Sequence[str], before: Mapping[str, int], levels: Mapping[str, int]
) -> None:
    """Nobody's word is loosened but by an act that names how many people it concerns."""
    number = expected.pending
    rule = "What lets people lose more than before is done only if you name their number."
    hint: Text = (Argument("loosen", number), ", or everything as it was")
    hint = hint if number or raised else ("leave ", Argument("loosen"), " out")
    if given.loosen is not None and (not is_whole(given.loosen, 0, 1 << 62) or given.loosen != number):
        who = show_count(number, "person", "people")
        raise LedgerError(f"{who} would have a larger epsilon than before.", rule=rule, suggest=hint)
    if raised and given.loosen is None:
        told = [f"{name!r} {_show(before[name])} → {_show(levels[name])}" for name in raised]
        what = f"Levels would mean more than before ({', '.join(told)}), for {show_count(number, 'person', 'people')}."
        raise LedgerError(what, rule=rule, suggest=hint)


def _show(code: int) -> str:
    return "public" if code == PUBLIC_CODE else f"{to_epsilon(code):g}"


def _check_newcomers(connection: Connection, given: Application, expected: Enrolment, older: bool) -> None:
    """The same people named otherwise would have new budgets: many newcomers need the steward's word."""
    people = int(connection.execute("SELECT coalesce(sum(people), 0) FROM cohorts").fetchone()[0])
    listed = expected.known + expected.joined
    counted = f"Of {listed:,} people, {expected.joined:,} are new to this ledger and {expected.known:,} known."
    if people and older and expected.known < (1 - MANY_NEW) * listed:
        rule = "A ledger of an older release takes over a table of which it knows nine in ten people."
        raise LedgerError(counted, rule=rule, suggest="the table and the ids that it was made with, or a new ledger")
    if people and not given.confirm and (expected.known == 0 or expected.joined > MANY_NEW * listed):
        rule = "The same people named otherwise would have new budgets."
        sure = ("look at the ids; if these people are new, ", Argument("confirm", True))
        raise LedgerError(counted, rule=rule, suggest=sure)
    asked = int((np.array([word.said for word in given.words] or [True])[given.asked]).sum())
    if not given.confirm and given.unmatched > MANY_NEW * max(asked, 1):
        what = f"{show_count(given.unmatched, 'preference')} of {asked:,} name nobody in the data."
        rule = "Ids that are written otherwise would leave people at the default."
        absent = ("ids as they stand in the data; if these people have no rows, ", Argument("confirm", True))
        raise LedgerError(what, rule=rule, suggest=absent)
