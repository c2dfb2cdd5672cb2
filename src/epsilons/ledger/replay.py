"""What the journal adds up to: its lines are followed one by one, and say what every table must hold.

Nothing here is shared with the code that charges but how rosters are written: balances are added up again.

A replay can be condensed to what the next line needs: living cohorts, open questions, the newest registrations. Who
keeps that beside the head (`journal.Anchor`) follows only the lines that are new since, however long the journal is.
"""

import json
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Self

from epsilons.ledger import journal
from epsilons.ledger.consent import count_over, name_period
from epsilons.ledger.rosters import change_earlier, count_earlier, is_lost, mark_lost, read_public, read_term
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import LOST, MOVED, REFUNDED, RESERVED, STORED, TOUCHED, does_not_add_up

#: How a condensed replay is written; one of another kind is not read, and everything is followed again.
_KIND = 5
#: So many lines are marked at most; if there are more, every second mark is let go.
_MARKS = 256
#: What cohorts were before levels had names and datasets had rosters.
_UNNAMED = {"level": None, "own": 0, "datasets": "{}"}
#: What people have in common who become one cohort.
_ALIKE = ("state", "own", "level")
_FROM_THE_LINE = ("number", "key", "kind", "individual", "epoch", "description")


@dataclass(slots=True)
class Account:
    """A row of the table of cohorts, in its order."""

    id: int
    granted: int | None
    spent: int
    reserved: int
    ceiling: int
    people: int
    state: str
    level: str | None
    own: int
    datasets: str

    @property
    def kept(self) -> bool:
        """Whether a later line may say anything about it."""
        return self.people > 0 or self.reserved > 0


#: The columns of that table, and an account as a row of it.
COLUMNS = [each.name for each in fields(Account)]
as_row = attrgetter(*COLUMNS)


@dataclass
class Asked:
    """A row of the table of reservations, and its charges: {cohort: (nano, carried, level)}."""

    row: dict[str, Any]
    charges: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    #: The digest of the stored answer.
    answer: str | None = None


@dataclass
class Replay:
    """What the tables must hold after the lines followed so far.

    `ended` and `registered` are what these lines settled for good, for whoever compares them: they empty the lists.
    """

    line: int = 0
    head: str = journal.START
    about: dict[str, Any] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)
    open: dict[int, Asked] = field(default_factory=dict)
    quotas: dict[str, dict[str, Any]] = field(default_factory=dict)
    levels: list[dict[str, Any]] = field(default_factory=list)
    #: The newest registration of every dataset, by its name.
    newest: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Who came where since then, as a hash, which whoever compares the entries goes on with.
    moved: dict[str, str] = field(default_factory=dict)
    #: The first release of individual privacy that data was read for.
    individual: int | None = None
    #: How many there were: cohorts, questions, charges, registrations, entries of the roster, lines of departures.
    cohorts: int = 0
    releases: int = 0
    charges: int = 0
    registrations: int = 0
    entries: int = 0
    departures: int = 0
    #: Lines and their hashes, one out of so many: whoever looks at an old line need not follow the chain to its end.
    marks: list[tuple[int, str]] = field(default_factory=list)
    apart: int = 64
    live: set[str] = field(default_factory=set)
    #: Cohorts that everybody left at once: nobody comes back.
    left: set[int] = field(default_factory=set)
    ended: list[Asked] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)

    def condense(self) -> str:
        """What the next lines need, as text."""
        kept = [as_row(account) for account in self.accounts.values() if account.kept]
        asked = [[one.row, [[c, *paid] for c, paid in one.charges.items()]] for one in self.open.values()]
        same = {name: getattr(self, name) for name in _CONDENSED}
        return journal.to_json({"kind": _KIND, "accounts": kept, "open": asked, **same})

    @classmethod
    def of(cls, text: str) -> Self:
        """The inverse; ValueError for what is no condensed replay of this kind."""
        found = json.loads(text)
        if found.pop("kind") != _KIND:
            raise ValueError
        accounts = {row[0]: Account(*row) for row in found.pop("accounts")}
        asked = {
            row["number"]: Asked(row, {c: tuple(paid) for c, *paid in charges}) for row, charges in found.pop("open")
        }
        return cls(accounts=accounts, open=asked, **{name: found[name] for name in _CONDENSED})

    def follow(self, seq: int, kind: str, at: str, body: str, held: str) -> dict[str, Any]:
        """The next line, if it is chained to the one before; what it says."""
        if seq != self.line + 1 or journal.chain(self.head, seq, kind, at, body) != held:
            raise does_not_add_up(f"the chain breaks at line {self.line + 1}")
        self.line, self.head = seq, held
        said: dict[str, Any] = json.loads(body)
        self._take(seq, kind, at, said)
        if seq % self.apart == 0:
            self._remember()
        return said

    def list_moves(self) -> dict[int, tuple[int, str]]:
        """Who moved since the newest registrations, by the lines of these: (up to which line, as a hash)."""
        return {self.newest[name]["seq"]: (self.line, known) for name, known in self.moved.items()}

    def _remember(self) -> None:
        self.marks.append((self.line, self.head))
        if len(self.marks) > _MARKS:
            self.apart *= 2
            self.marks = [(line, known) for line, known in self.marks if line % self.apart == 0]

    def _take(self, seq: int, kind: str, at: str, body: dict[str, Any]) -> None:
        match kind:
            case "open":
                self.about = {
                    "one": 1, "id": body["id"], "format": body["format"], "epoch": 0,
                    "neighbors": None, "rows_per_person": None, "allow_individual": None,
                    "salt": body.get("salt"), "losses": 0,
                    "measure": body.get("measure"), "ids": None, "spelling": None, "digest": body.get("digest"),
                    "floor": body.get("floor"), "witness": None, "state": None,
                }  # fmt: skip
            case "migrate":
                if body["format"] != self.about["format"] + 1:
                    raise does_not_add_up(f"line {seq} skips a format")
                self.about |= body
                if body.get("floor", 0) < 0:
                    for number in [one for one, asked in self.open.items() if asked.row["state"] == RESERVED]:
                        self._set_state(number, RESERVED, TOUCHED)
                        self._mark(number)
                    self._spend_all()
            case "terms" | "unit":
                if self.about["neighbors" if kind == "terms" else "ids"] is not None:
                    raise does_not_add_up(f"line {seq} settles the {kind} a second time")
                self.about |= body
            case "end":
                if self.about["state"] is not None:
                    raise does_not_add_up(f"line {seq} ends what has ended")
                self.about |= {"state": body["state"]}
            case "arrive":
                if self.about["state"] != MOVED:
                    raise does_not_add_up(f"line {seq} arrives without having moved")
                self.about |= {"state": None}
                for name, digests in body.get("registrations", {}).items():
                    self.newest[name] |= {one: digests[one] for one in ("about", "stamp")}
            case "witness":
                self.about |= {"witness": body["witness"]}
            case "levels":
                self.levels += [{"name": n, "seq": seq, "granted": code} for n, code in body["levels"].items()]
            case "register":
                self._register(seq, at, body)
            case "roster":
                self._roster(seq, body)
            case "merge":
                self._merge(seq, body)
            case "renew":
                self._renew(seq, at, body)
            case "reserve":
                self._reserve(seq, at, body)
            case "touch" | "refund":
                self._settle(body["number"], spent=kind == "touch")
            case "quota":
                self._analyst(body["analyst"]).update(nano=body["nano"], questions=body["questions"])
            case "loss":
                self._lose(seq, body)
            case "store":
                self._set_state(body["number"], TOUCHED, STORED)
                self.open[body["number"]].answer = body["answer"]
                self._end(body["number"])
            case _:
                raise does_not_add_up(f"line {seq} is of no known kind")

    def _register(self, seq: int, at: str, body: dict[str, Any]) -> None:
        before = self.newest.get(body["name"])
        in_turn = body["number"] == self.registrations + 1 and body["epoch"] == self.about["epoch"]
        if not in_turn or body["dataset"] != (body["number"] if before is None else before["dataset"]):
            raise does_not_add_up(f"line {seq} registers out of turn")
        self.registrations += 1
        self.newest[body["name"]] = row = {**body, "seq": seq, "at": at}
        self.moved[body["name"]] = journal.START
        self.registered.append(row)

    def _change(self, seq: int, body: dict[str, Any]) -> None:
        """The next state of the roster, with cohorts that are new."""
        if body["epoch"] != self.about["epoch"] + 1:
            raise does_not_add_up(f"line {seq} skips a change of the roster")
        self.about["epoch"] = body["epoch"]
        for made in body["made"]:
            if made["id"] <= self.cohorts:
                raise does_not_add_up(f"line {seq} makes a cohort twice")
            self.cohorts = made["id"]
            self.accounts[made["id"]] = Account(**{**_UNNAMED, **made, "reserved": 0, "people": 0})

    def _roster(self, seq: int, body: dict[str, Any]) -> None:
        self._change(seq, body)
        self._carry(body)
        for group in body["joined"]:
            target = self._find_target(group)
            if not self._may_join(target, body.get("anew", False)):
                raise does_not_add_up(f"line {seq} lets newcomers join people with a past")
            target.people += group["people"]
            self.entries += group["people"]
        for group in body["moved"]:
            origin, target = self._move(group)
            # What earlier periods count for comes along, or counts as spent where the grant is for good.
            earlier, kept = count_earlier(origin.datasets), count_earlier(target.datasets)
            total, before, after = origin.spent + earlier, is_lost(origin.datasets), is_lost(target.datasets)
            if before and not after and body.get("anew", False) and target.own:
                total = kept  # they consented anew: whatever was spent before counts no more
            elif before:
                total = max(total, (target.granted or 0) + kept) if after else -1
            same = origin.reserved == target.reserved and after <= before
            if not (total == target.spent + kept and same and kept in (0, earlier)):
                raise does_not_add_up(f"line {seq} moves people without what they had spent")

    def _renew(self, seq: int, at: str, body: dict[str, Any]) -> None:
        """A period has begun: whoever moves stands as before, and all that was granted for the last one counts."""
        self._change(seq, body)
        self._carry(body)
        self._leave(seq, body["moved"])
        for group in body["moved"]:
            origin, target = self._move(group)
            before, after = read_term(origin.datasets), read_term(target.datasets)
            if before is None or after is None or origin.granted is None:
                raise does_not_add_up(f"line {seq} renews what was granted for good")
            alike = all(getattr(origin, one) == getattr(target, one) for one in ("granted", "state", "own", "level"))
            told = [(read_rosters(one.datasets), read_public(one.datasets)) for one in (origin, target)]
            begun = before.period == after.period and before.label < after.label == name_period(after.period, at)
            over = count_over(before, after.label, origin.granted, origin.spent, body.get("lost", False))
            counted = after.earlier == before.earlier + over and target.spent == 0
            counted = counted and is_lost(origin.datasets) == is_lost(target.datasets)
            if not (alike and told[0] == told[1] and begun and counted and origin.reserved == target.reserved):
                raise does_not_add_up(f"line {seq} renews more than was granted")

    def _carry(self, body: dict[str, Any]) -> None:
        """Charges that may still be given back come along."""
        for number, cohort, nano in body["carried"]:
            self._pay(number, cohort, nano, 1, None)
            self.accounts[cohort].reserved += nano

    def _merge(self, seq: int, body: dict[str, Any]) -> None:
        """Cohorts become one: whoever moves stands as before, with no larger grant, and no less counts as spent."""
        self._change(seq, body)
        self._leave(seq, body["moved"])
        for group in body["moved"]:
            origin, target = self._move(group)
            alike = all(getattr(origin, one) == getattr(target, one) for one in _ALIKE)
            alike = alike and change_earlier(origin.datasets, 0) == change_earlier(target.datasets, 0)
            public = origin.granted is None, target.granted is None
            smaller = public in ((True, True), (False, False)) and (target.granted or 0) <= (origin.granted or 0)
            more, earlier = target.spent - origin.spent, count_earlier(target.datasets) - count_earlier(origin.datasets)
            counted = more + earlier == group["rounded"] and min(more, earlier) >= 0
            settled = origin.reserved == target.reserved == 0
            if not (alike and smaller and counted and settled):
                raise does_not_add_up(f"line {seq} merges people who did not stand alike")

    def _leave(self, seq: int, groups: list[dict[str, Any]]) -> None:
        """Everybody in these cohorts leaves at once. Before format 7 each person moved, and groups have a digest."""
        whole = [group for group in groups if "digest" not in group]
        origins = {group["origin"] for group in whole}
        everybody = all(self.accounts[group["origin"]].people == group["people"] > 0 for group in whole)
        stays = origins.isdisjoint(group["target"] for group in groups)
        if len(origins) < len(whole) or not (everybody and stays):
            raise does_not_add_up(f"line {seq} empties cohorts that people stay in")
        self.left |= origins
        self.departures += bool(whole)

    def _find_target(self, group: dict[str, Any]) -> Account:
        if group["target"] in self.left:
            raise does_not_add_up(f"line {self.line} lets people into a cohort that everybody left")
        return self.accounts[group["target"]]

    def _move(self, group: dict[str, Any]) -> tuple[Account, Account]:
        origin, target = self.accounts[group["origin"]], self._find_target(group)
        origin.people -= group["people"]
        target.people += group["people"]
        self.entries += group["people"] if "digest" in group else 0
        return origin, target

    def _reserve(self, seq: int, at: str, body: dict[str, Any]) -> None:
        number = body["number"]
        in_turn = number == self.releases + 1 and body["epoch"] == self.about["epoch"]
        if not in_turn or body["key"] in self.live:
            raise does_not_add_up(f"line {seq} charges out of turn")
        self.releases = number
        self.live.add(body["key"])
        if body["individual"] and not self.about["allow_individual"]:
            raise does_not_add_up(f"line {seq} breaks the terms")
        self.open[number] = Asked(
            {name: body[name] for name in _FROM_THE_LINE}
            | {"state": RESERVED, "seq": seq, "at": at}
            | {name: body.get(name) for name in ("analyst", "dataset", "question")}
        )
        for cohort, nano, *more in body["charges"]:
            account, level = self.accounts[cohort], more[0] if more else None  # once no level was told
            if body.get("dataset") is not None and body["dataset"] not in read_rosters(account.datasets):
                raise does_not_add_up(f"line {seq} charges people of another dataset")
            account.reserved += nano
            too_much = nano and (account.granted is None or account.spent + account.reserved > account.granted)
            # Who is used and pays nothing is public, or weighs nothing, and has a level.
            if too_much or nano < (1 if level is None else 0):
                raise does_not_add_up(f"line {seq} charges more than was granted")
            self._pay(number, cohort, nano, 0, level)
        self._count(number, 1)

    def _settle(self, number: int, spent: bool) -> None:
        self._set_state(number, RESERVED, TOUCHED if spent else REFUNDED)
        for cohort, (nano, *_) in self.open[number].charges.items():
            self.accounts[cohort].reserved -= nano
            self.accounts[cohort].spent += nano if spent else 0
        if spent:
            self._mark(number)
        else:
            self.live.discard(self.open[number].row["key"])
            self._count(number, -1)
            self._end(number)

    def _lose(self, seq: int, body: dict[str, Any]) -> None:
        """The worst is assumed of what was lost: everything granted is spent, every open question is closed."""
        self.about["losses"] += 1
        if body["losses"] != self.about["losses"]:
            raise does_not_add_up(f"line {seq} skips a loss")
        bound = body.get("floor", -1)
        for account in self.accounts.values() if bound >= 0 else ():
            account.spent, account.reserved = account.spent + account.reserved + bound, 0
            account.ceiling = max(account.ceiling, account.spent)
        if bound < 0:
            self._spend_all()
        if self.about["floor"] is not None:
            self.about["floor"] = -1 if min(bound, self.about["floor"]) < 0 else self.about["floor"] + bound
        for number, asked in list(self.open.items()):
            asked.row["state"] = LOST
            self._mark(number)
            self.live.discard(asked.row["key"])
            self._end(number)

    def _spend_all(self) -> None:
        """Every grant counts as spent; since format 6 of people's later cohorts, too, until they consent anew."""
        for account in self.accounts.values():
            account.spent = max(account.spent + account.reserved, account.granted or 0)
            account.reserved = 0
            if self.about["floor"] is not None:
                account.datasets = mark_lost(account.datasets)

    def _may_join(self, target: Account, anew: bool) -> bool:
        """Whether newcomers have the past of whom nothing is known."""
        floor, lost = self.about["floor"], is_lost(target.datasets)
        if floor is None:  # before format 6
            return target.spent == ((target.granted or 0) if self.about["losses"] else 0)
        if floor < 0 and not anew:
            return lost and target.spent == (target.granted or 0)
        return not lost and target.spent == max(floor, 0) and (floor >= 0 or target.own == 1)

    def _mark(self, number: int) -> None:
        if self.open[number].row["individual"]:
            self.individual = number if self.individual is None else min(self.individual, number)

    def _analyst(self, name: str) -> dict[str, Any]:
        nothing = {"analyst": name, "nano": None, "questions": None, "used_nano": 0, "used_questions": 0}
        return self.quotas.setdefault(name, nothing)

    def _count(self, number: int, sign: int) -> None:
        """A question counts against its analyst's quota with the largest charge it made."""
        name = self.open[number].row["analyst"]
        if name is not None:
            largest = max((nano for nano, carried, _ in self.open[number].charges.values() if not carried), default=0)
            self._analyst(name)["used_nano"] += sign * largest
            self._analyst(name)["used_questions"] += sign

    def _set_state(self, number: int, before: str, after: str) -> None:
        if number not in self.open or self.open[number].row["state"] != before:
            raise does_not_add_up(f"release {number} was settled out of turn")
        self.open[number].row["state"] = after

    def _end(self, number: int) -> None:
        self.ended.append(self.open.pop(number))

    def _pay(self, number: int, cohort: int, nano: int, carried: int, level: int | None) -> None:
        if cohort in self.open[number].charges:
            raise does_not_add_up(f"release {number} charges a cohort twice")
        self.open[number].charges[cohort] = (nano, carried, level)
        self.charges += 1


#: What is condensed as it stands.
_CONDENSED = [
    each.name for each in fields(Replay) if each.name not in ("accounts", "open", "live", "left", "ended", "registered")
]
