"""Registering: identity and consent are the ledger's. Nobody is loosened in silence, nobody pays for others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.consent import PUBLIC_CODE, WITHDRAW_CODE, Word, rank_openness
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import StalePlanError, Terms
from support.ledgers import ABOUT, TERMS, application, key, nano, person

STRICT, OPEN = Word(nano("0.05"), "strict"), Word(nano("1"), "open")
ANN, BOB, CY = person("ann"), person("bob"), person("cy")


@pytest.fixture
def ledger(address: str | None) -> Iterator[Ledger]:
    """Nothing is settled yet."""
    book = epsilons.ledger.open(address)
    yield book
    book.close()


def test_a_registration_is_kept_with_its_levels_and_people(ledger: Ledger) -> None:
    made, done = ledger.register(application("wages", {"ann": STRICT, "bob": OPEN}))
    assert (made.number, made.dataset, made.name, made.version) == (1, 1, "wages", "1")
    assert (done.joined, done.known, done.gone) == (2, 0, 0)
    assert ledger.find_registration("wages") == made
    assert ledger.find_registration("other") is None
    assert ledger.levels() == {"strict": STRICT.code, "open": OPEN.code}
    assert {(c.granted, c.level, c.people) for c in ledger.cohorts(1)} == {(w.code, w.level, 1) for w in (STRICT, OPEN)}
    ledger.verify()


def test_only_people_of_a_dataset_pay_for_it(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    ledger.register(application("health", {"bob": OPEN, "cy": OPEN}, confirm=True))
    may = ledger.allowance(Fraction(1, 2), dataset=2)
    number = ledger.reserve(key("one"), may.nano, epoch=may.epoch, kind="count", dataset=2).number
    ledger.mark_read(number)
    assert [ledger.statement(who).spent for who in (ANN, BOB, CY)] == [0, nano("0.5"), nano("0.5")]
    assert {row.tobytes() for row in ledger.members(1).digests} == {ANN, BOB}
    mine = ledger.allowance(Fraction(1, 2), dataset=1)
    others = dict.fromkeys({c.id for c in ledger.cohorts(2)} - {c.id for c in ledger.cohorts(1)}, 1)
    with pytest.raises(StalePlanError):
        ledger.reserve(key("two"), others, epoch=mine.epoch, kind="count", dataset=1)
    ledger.verify()


def test_a_roster_is_read_by_its_numbers_however_they_are_spaced(ledger: Ledger) -> None:
    people = {"ann": OPEN, "bob": Word(OPEN.code, '"2": ')}
    for number in range(1, 13):
        ledger.register(application(f"table {number}", people if number == 12 else {"ann": OPEN}, confirm=True))
    assert read_rosters('{"12":"=open","2":""}') == {12: "=open", 2: ""}
    before = [ledger.cohorts(number) for number in (1, 2, 12)]
    assert [sum(cohort.people for cohort in found) for found in before] == [1, 1, 2]
    with ledger._database.write() as connection:
        connection.execute("""UPDATE cohorts SET datasets = replace(datasets, '": "', '":"')""")
    for number, known in zip((1, 2, 12), before, strict=True):
        assert [cohort.id for cohort in ledger.cohorts(number)] == [cohort.id for cohort in known]


def test_who_is_gone_is_no_longer_charged_and_comes_back_with_what_was_spent(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    may = ledger.allowance(Fraction(1, 2), dataset=1)
    ledger.mark_read(ledger.reserve(key("one"), may.nano, epoch=may.epoch, kind="count", dataset=1).number)
    _, done = ledger.register(application("wages", {"bob": OPEN}, version="2"))
    assert (done.known, done.gone) == (1, 1)
    assert {row.tobytes() for row in ledger.members(1).digests} == {BOB}
    _, done = ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}, version="3"))
    assert (done.known, done.joined) == (2, 0)
    assert ledger.statement(ANN).spent == nano("0.5")


def test_a_persons_own_word_stands_until_the_source_says_something_new_of_them(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    ledger.set_grants([ANN], [STRICT.code])
    _, done = ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}, version="2"))
    assert (ledger.statement(ANN).granted, done.kept, done.pending) == (STRICT.code, 1, 0)
    _, done = ledger.register(application("wages", {"ann": Word(nano("0.5")), "bob": OPEN}, version="3"))
    assert (ledger.statement(ANN).granted, done.pending, done.pending_own) == (STRICT.code, 1, 1)
    with pytest.raises(LedgerError, match=r"1 person would have a larger epsilon.*1 of them said something stricter"):
        ledger.register(application("wages", {"ann": Word(nano("0.5")), "bob": OPEN}, version="4", loosen=2))
    ledger.register(application("wages", {"ann": Word(nano("0.5")), "bob": OPEN}, version="4", loosen=1))
    assert ledger.statement(ANN).granted == nano("0.5")


def test_people_who_say_the_same_each_for_themselves_move_together(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN, "cy": OPEN}))
    ledger.say([ANN, BOB, CY], np.arange(3), [STRICT, STRICT, Word(STRICT.code)])
    assert [ledger.statement(who).granted for who in (ANN, BOB, CY)] == [STRICT.code] * 3
    ledger.verify()
    ledger.say([person("dan"), person("eve")], np.arange(2), [STRICT, STRICT])
    ledger.verify()


def test_a_level_that_means_more_needs_an_act_that_names_how_many(ledger: Ledger) -> None:
    people = {str(n): STRICT for n in range(12)}
    ledger.register(application("wages", people))
    looser = dict.fromkeys(people, Word(nano("0.1"), "strict"))
    with pytest.raises(LedgerError, match=r"'strict' 0\.05 → 0\.1\), for 12 people.*loosen=12"):
        ledger.register(application("wages", looser, version="2"))
    assert ledger.levels() == {"strict": STRICT.code}
    assert len(ledger.registrations()) == 1
    ledger.register(application("wages", looser, version="2", loosen=12))
    assert ledger.levels() == {"strict": nano("0.1")}
    assert ledger.statement(person("3")).granted == nano("0.1")
    stricter = dict.fromkeys(people, Word(nano("0.02"), "strict"))
    ledger.say([person("3")], np.zeros(1, int), [Word(nano("0.1"), "strict")])
    _, done = ledger.register(application("wages", stricter, version="3"))
    assert done.tightened == 12
    assert ledger.statement(person("3")).granted == nano("0.02")
    ledger.verify()


def test_a_level_means_the_same_in_all_datasets_unless_an_act_for_all_says_otherwise(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": STRICT, "bob": OPEN}))
    # Less as well as more: who is only in the other dataset would have another epsilon.
    for code, raised in (("0.5", 0), ("9", 1)):
        other = {"bob": Word(nano(code), "open")}
        said = rf"'open' is 1 there, {code} here.*also has wages.*levels=\{{'open': 1.0\}}.*redefine=True"
        with pytest.raises(LedgerError, match=said):
            ledger.register(application("health", other))
        ahead = ledger.foresee(application("health", other))
        # What a larger meaning needs besides is said at once.
        assert (len(ahead.objections), ahead.expected.pending) == (1 + raised, raised)
    assert (ledger.levels()["open"], ledger.statement(BOB).granted) == (OPEN.code, OPEN.code)
    ledger.register(application("health", {"bob": Word(nano("0.5"), "open")}, redefine=True))
    assert (ledger.levels()["open"], ledger.statement(BOB).granted) == (nano("0.5"), nano("0.5"))
    raised = {"strict": nano("9"), "open": nano("0.5")}
    with pytest.raises(LedgerError, match=r"'strict' 0\.05 → 9\), for 0 people.*loosen=0"):
        ledger.register(application("health", {"bob": Word(nano("0.5"), "open")}, "2", levels=raised, redefine=True))
    assert (ledger.levels()["strict"], ledger.statement(ANN).granted) == (STRICT.code, STRICT.code)


def test_a_source_raises_nobody_above_what_another_says_of_them(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN, "cy": STRICT}))
    silent = Word(nano("0.2"), "standard", said=False)
    ledger.register(application("health", {"ann": STRICT, "bob": silent, "cy": OPEN}))
    assert [ledger.statement(who).granted for who in (ANN, BOB, CY)] == [STRICT.code, nano("0.2"), STRICT.code]
    again = {"ann": OPEN, "bob": OPEN, "cy": OPEN}
    assert ledger.foresee(application("wages", again, "2")).expected.pending == 1  # cy alone: now both say open
    ledger.register(application("wages", again, "2", loosen=1))
    assert [ledger.statement(who).granted for who in (ANN, BOB, CY)] == [STRICT.code, nano("0.2"), OPEN.code]
    ledger.register(application("health", {"cy": OPEN}, "2"))  # no longer says anything of the others
    assert ledger.foresee(application("wages", again, "3")).expected.pending == 2
    ledger.verify()


def test_a_lower_ceiling_brings_everyone_on_the_roster_down(ledger: Ledger) -> None:
    people = {"ann": OPEN, "bob": OPEN}
    ledger.register(application("wages", {**people, "dan": OPEN}, about={**ABOUT, "ceiling": 10.0}))
    ledger.register(application("health", {"cy": OPEN}, confirm=True))
    ledger.set_grants([ANN, BOB, CY], [nano("8"), None, nano("8")])
    _, done = ledger.register(application("wages", people, "2", about={**ABOUT, "ceiling": 5.0}))
    assert done.tightened == 1
    assert [ledger.statement(who).granted for who in (ANN, BOB, CY)] == [nano("5"), None, nano("8")]
    ledger.verify()


def test_who_only_spoke_is_as_new_as_who_never_did(ledger: Ledger) -> None:
    first, strangers = {str(n): OPEN for n in range(20)}, {f"x{n}": OPEN for n in range(20)}
    ledger.register(application("wages", first))
    ledger.set_grants([person(who) for who in strangers], [STRICT.code] * 20)
    ledger.withdraw([person("x0")])
    with pytest.raises(LedgerError, match=r"20 are new to this ledger and 0 known.*confirm=True"):
        ledger.register(application("wages", strangers, version="2"))
    _, done = ledger.register(application("wages", first | {"x1": OPEN}, version="2"))
    assert (done.known, done.joined, done.kept) == (20, 1, 1)
    assert ledger.statement(person("x1")).granted == STRICT.code
    # Who was on a roster is known when they return, whatever they said since.
    ledger.set_grants([person("1")], [STRICT.code])
    ledger.withdraw([person("2")])
    _, done = ledger.register(application("wages", {str(n): OPEN for n in range(3, 20)}, version="3"))
    assert done.gone == 4
    _, done = ledger.register(application("wages", first | {"x2": OPEN}, version="4"))
    assert (done.known, done.joined) == (20, 1)


def test_who_spoke_for_a_level_that_is_renewed_is_as_new_as_who_never_did(ledger: Ledger) -> None:
    """What stands beside such a word is a period, and no roster."""
    about = {**ABOUT, "renews": {"open": "month"}}
    ledger.register(application("wages", {str(n): OPEN for n in range(20)}, about=about))
    strangers = {f"x{n}": OPEN for n in range(20)}
    ledger.say([person(who) for who in strangers], np.zeros(20, int), [OPEN])
    with pytest.raises(LedgerError, match=r"20 are new to this ledger and 0 known.*confirm=True"):
        ledger.register(application("wages", strangers, version="2", about=about))


def test_a_source_that_falls_silent_overrules_nobodys_word(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    ledger.set_grants([ANN], [STRICT.code])
    silent = {"ann": Word(nano("5"), None, said=False), "bob": OPEN}
    _, done = ledger.register(application("wages", silent, version="2"))
    assert (done.pending, done.kept) == (0, 1)
    with pytest.raises(LedgerError, match="leave loosen out"):
        ledger.register(application("wages", silent, version="3", loosen=1))


def test_a_level_that_means_more_leaves_own_words_alone(ledger: Ledger) -> None:
    people = dict.fromkeys(["ann", "bob"], STRICT)
    ledger.register(application("wages", people))
    ledger.say([ANN], np.zeros(1, int), [STRICT])
    looser = dict.fromkeys(people, Word(nano("0.1"), "strict"))
    ledger.register(application("wages", looser, version="2", loosen=1))
    assert [ledger.statement(who).granted for who in (ANN, BOB)] == [STRICT.code, nano("0.1")]
    for wrong in (True, 1.0):
        with pytest.raises(LedgerError, match="larger epsilon"):
            ledger.register(application("wages", looser, version="3", loosen=wrong))


def test_many_newcomers_or_nobody_known_need_the_stewards_word(ledger: Ledger) -> None:
    first = {str(n): OPEN for n in range(20)}
    ledger.register(application("wages", first))
    before = ledger.epoch
    for others in ({f"x{n}": OPEN for n in range(20)}, first | {f"x{n}": OPEN for n in range(3)}):
        with pytest.raises(LedgerError, match=r"are new to this ledger.*confirm=True"):
            ledger.register(application("wages", others, version="2"))
        assert (ledger.epoch, len(ledger.registrations())) == (before, 1)
    ledger.register(application("wages", first | {"x1": OPEN, "x2": OPEN}, version="2"))
    ledger.register(application("wages", {"y": OPEN}, version="3", confirm=True))


def test_newcomers_count_until_the_steward_confirms_them(ledger: Ledger) -> None:
    """The same people renamed, a few each time, would all have new budgets in the end."""
    names = [str(n) for n in range(40)]

    def register(version: int, renamed: int, confirm: bool = False) -> None:
        people = [f"new {name}" if place < renamed else name for place, name in enumerate(names)]
        asked = dict.fromkeys(people, OPEN)
        ledger.register(application("wages", asked, version=str(version), confirm=confirm))

    register(1, 0)
    register(2, 2)
    register(3, 2)  # nobody is new: what was noted stays
    register(4, 4)
    more = r"1 are new to this ledger and 39 known\. Another 4 joined before them, unconfirmed.*confirm=True"
    for _ in range(2):
        with pytest.raises(LedgerError, match=more):
            register(5, 5)
    register(5, 5, confirm=True)
    register(6, 9)
    with pytest.raises(LedgerError, match="4 joined before"):
        register(7, 10)
    ledger.register(application("health", dict.fromkeys(names[10:], OPEN)))  # counts by itself
    ledger.verify()


def test_newcomers_count_under_whatever_name(ledger: Ledger) -> None:
    """The same people renamed, a few under each new name of a dataset, would all have new budgets in the end."""
    names = [str(n) for n in range(40)]
    ledger.register(application("wages", dict.fromkeys(names, OPEN)))
    for step in (1, 2):
        people = [f"new {name}" if place < 2 * step else name for place, name in enumerate(names)]
        ledger.register(application(f"wages {step}", dict.fromkeys(people, OPEN)))
    people = [f"new {name}" if place < 6 else name for place, name in enumerate(names)]
    with pytest.raises(LedgerError, match="4 joined before them, unconfirmed"):
        ledger.register(application("wages 3", dict.fromkeys(people, OPEN)))


def test_preferences_that_name_nobody_need_the_stewards_word(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"2 preferences of 2 name nobody in the data.*confirm=True"):
        ledger.register(application("wages", {"ann": STRICT, "bob": STRICT}, unmatched=2))
    assert ledger.terms() is None
    _, done = ledger.register(application("wages", {"ann": STRICT}, unmatched=2, confirm=True))
    assert done.unmatched == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"about": {**ABOUT, "person": "row"}}, "registered with other people.*person='id'"),
        ({"about": {**ABOUT, "rows_per_person": 5}}, "registered with another cap.*rows_per_person=1"),
        ({"terms": replace(TERMS, neighbors="replace")}, "created under other terms"),
        (
            {"terms": replace(TERMS, ids="number")},
            r"ids of another kind.*holds texts; of a CSV file, types=\{'id': 'text'\}",
        ),
        ({"version": "1"}, "registered already, and the source may hold other rows"),
    ],
)
def test_what_was_settled_stays(ledger: Ledger, change: dict[str, object], said: str) -> None:
    ledger.register(application("wages", {"ann": OPEN}))
    with pytest.raises(LedgerError, match=said):
        ledger.register(application("wages", {"ann": OPEN}, **{"version": "2", **change}))
    assert len(ledger.registrations()) == 1


def test_the_same_version_again_needs_the_same_source(ledger: Ledger) -> None:
    source = {"files": [["wages.parquet", 10, 20]], "types": {}, "table": None}
    same = {"about": {**ABOUT, "source": source}}
    ledger.register(application("wages", {"ann": STRICT}, **same))
    ledger.register(application("wages", {"ann": OPEN}, **same, loosen=1))
    assert ledger.statement(ANN).granted == OPEN.code
    other = {"about": {**ABOUT, "source": {**source, "files": [["wages.parquet", 10, 21]]}}}
    with pytest.raises(LedgerError, match="may hold other rows"):
        ledger.register(application("wages", {"ann": STRICT}, **other))


def test_a_preview_changes_nothing_and_says_what_would_happen(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    head, asked = ledger.verify().head, {"cy": OPEN, "bob": STRICT}
    shown = ledger.foresee(application("wages", asked, version="2")).expected
    assert ledger.verify().head == head
    _, done = ledger.register(application("wages", asked, version="2", confirm=True))
    named = ("joined", "known", "gone", "tightened")
    assert [getattr(shown, name) for name in named] == [getattr(done, name) for name in named] == [1, 1, 1, 1]


def test_an_answer_is_found_again_whatever_became_of_the_roster(ledger: Ledger) -> None:
    ledger.register(application("wages", {"ann": OPEN, "bob": OPEN}))
    may = ledger.allowance(Fraction(1, 2), dataset=1)
    held = ledger.reserve(key("one"), may.nano, epoch=may.epoch, kind="count", dataset=1, asked=key("asked"))
    assert ledger.find(key("another"), key("asked")) is None
    ledger.mark_read(held.number)
    ledger.store(held.number, b"42")
    ledger.withdraw([ANN])
    found = ledger.find(key("another"), key("asked"))
    assert found is not None
    assert found.answer == b"42"
    ledger.verify()


def test_an_older_ledger_takes_over_a_table_whose_people_it_knows() -> None:
    with pytest.raises(LedgerError, match="nine in ten"):
        known_in_part(8)
    known_in_part(9)


def known_in_part(known: int) -> None:
    book = epsilons.ledger.open()
    book.settle_terms("absent", 1)
    book.enroll([person(str(n)) for n in range(known)], [OPEN.code] * known)
    _, done = book.register(application("wages", {str(n): OPEN for n in range(10)}, confirm=True))
    assert (done.known, done.joined) == (known, 10 - known)
    assert book.terms() == Terms("absent", 1, ids="text", spelling="normal")
    assert {cohort.level for cohort in book.cohorts(1)} == {"open"}
    book.verify()


# The rules, one person at a time ------------------------------------------------------------------------------------


@dataclass
class Plain:
    """The rules as they are written, for a single person, without cohorts."""

    code: int
    level: str | None
    own: bool = False
    said: dict[int, Word] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)

    def hear(self, dataset: int, word: Word, loosen: bool) -> None:
        before = self.said.get(dataset)
        fresh = word.said and before is not None and (before.text != word.text or dataset in self.waiting)
        self.said[dataset] = word
        self.waiting.discard(dataset)
        if self.code == WITHDRAW_CODE:
            return
        stricter = rank_openness(word.code) < rank_openness(self.code)
        looser = rank_openness(word.code) > rank_openness(self.code)
        most = min(self.said.values(), key=lambda one: rank_openness(one.code)) if looser else word
        may = not looser or (loosen and rank_openness(most.code) > rank_openness(self.code))
        holds = ((fresh and may) or (word.said and before is None and stricter)) if self.own else may
        if holds:
            self.code, self.level, self.own = most.code, most.level, False
        elif self.own and fresh:
            self.waiting.add(dataset)

    def speak(self, code: int) -> None:
        self.code, self.own = code, True
        self.waiting.clear()


@pytest.mark.parametrize("seed", range(3))
def test_cohorts_follow_the_rules_of_single_people(seed: int) -> None:
    luck, book = random.Random(seed), epsilons.ledger.open()
    words = [Word(nano(text), name) for text, name in [("0.05", "strict"), ("1", "open"), ("0.05", None), ("3", None)]]
    words += [Word(PUBLIC_CODE, "public"), Word(nano("0.2"), None, said=False)]
    levels = {word.level: word.code for word in words if word.level is not None}
    model: dict[str, Plain] = {}
    for turn in range(30):
        some = luck.sample("abcdefgh", luck.randrange(1, 9))
        act = luck.choice(["wages", "health", "wages", "say", "withdraw"])
        if act == "say":
            word = luck.choice(words[:5])
            book.say([person(who) for who in some], np.zeros(len(some), int), [word])
            for who in some:
                model.setdefault(who, Plain(0, None)).speak(word.code)
        elif act == "withdraw":
            book.withdraw([person(who) for who in some])
            for who in some:
                model.setdefault(who, Plain(0, None)).speak(WITHDRAW_CODE)
        else:
            dataset = register(book, act, {who: luck.choice(words) for who in some}, str(turn), levels, model, luck)
            assert {row.tobytes() for row in book.members(dataset).digests} == {
                person(who) for who, one in model.items() if dataset in one.said
            }
        for who, one in model.items():
            told = book.statement(person(who))
            code = WITHDRAW_CODE if told.state == "withdrawn" else told.granted
            assert (PUBLIC_CODE if code is None else code) == one.code
    book.verify()


def register(
    book: Ledger,
    name: str,
    asked: dict[str, Word],
    version: str,
    levels: dict[str, int],
    model: dict[str, Plain],
    luck: random.Random,
) -> int:
    """In the ledger and, person by person, in the model; sometimes with the act that lets looser words hold."""
    given = application(name, asked, version, levels=levels, confirm=True)
    shown = book.foresee(given).expected
    loosen = luck.random() < 0.5
    if loosen:
        given = application(name, asked, version, levels=levels, confirm=True, loosen=shown.pending)
    made, _ = book.register(given)
    for who, word in asked.items():
        if who not in model:
            model[who] = Plain(word.code, word.level, said={made.dataset: word})
        else:
            model[who].hear(made.dataset, word, loosen)
    for who, one in model.items():
        if who not in asked:
            one.said.pop(made.dataset, None)
            one.waiting.discard(made.dataset)
    return made.dataset
