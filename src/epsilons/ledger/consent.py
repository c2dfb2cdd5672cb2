"""Whose word holds: what becomes of a person's standing when a source, or the person, says something.

Rules alone, without any database: they decide for a kind of people at a time, those who stand alike and ask alike.

- A stricter word holds at once, whoever says it.
- A looser word of a source waits for an act of the steward that names how many people it concerns.
- Of people on several rosters the strictest source decides: what one source says raises nobody above another's word.
- A person's own word stands until that person says otherwise, or until a source says something new about them. A
  source that no longer says anything is no word.
- Nobody on a dataset's roster stands above its ceiling once it is registered; own words neither, and one that would
  be above the least ceiling of the person's rosters is refused. Who is on none is held to the dataset they speak
  through.
- Who withdrew stays away until they come back themselves.
"""

from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType
from typing import NamedTuple, Self

from epsilons.errors import Argument, PreferenceError
from epsilons.measure import PLAIN, Measure

#: How a public grant, and a withdrawal, are written beside grants in nano-epsilon; no grant is 0.
PUBLIC_CODE, WITHDRAW_CODE = -1, 0
#: How a source's word is written: a level by its name, a default for who said nothing, a new word that waits.
_LEVEL, _DEFAULT, _WAITING = "=", "~", "?"


class Word(NamedTuple):
    """What is asked for: a grant in nano-epsilon, and the level's name if it was said by name.

    `said` is False for those who said nothing, so that a default applies: an epsilon, or a level by its name. `public`
    is what the source says of them in its public columns, as JSON: no part of the word, and no rule looks at it.
    """

    code: int
    level: str | None = None
    said: bool = True
    public: str = ""

    @property
    def text(self) -> str:
        """By what a source's word is known again: names stay the same word when a level is redefined."""
        word = str(self.code) if self.level is None else f"{_LEVEL}{self.level}"
        return word if self.said else f"{_DEFAULT}{word}"


def read_text(text: str, levels: Mapping[str, int]) -> Word | None:
    """The word that a text stands for, as `levels` have it now; None if that is not known."""
    text = text.removeprefix(_WAITING)
    said, text = not text.startswith(_DEFAULT), text.removeprefix(_DEFAULT)
    if text.startswith(_LEVEL):
        name = text.removeprefix(_LEVEL)
        return Word(levels[name], name, said) if name in levels else None
    # Earlier releases wrote nothing for a default.
    return Word(int(text), None, said) if text else None


#: The periods of the calendar by which a grant may be renewed.
PERIODS = ("year", "quarter", "month", "week")


def name_period(period: str, at: str) -> str:
    """The period of the calendar that a time is in; later ones come later in the alphabet."""
    day = date.fromisoformat(at[:10])
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    return {"year": at[:4], "quarter": f"{at[:4]}-Q{(day.month + 2) // 3}", "month": at[:7]}[period]


def find_first_day(period: str, label: str) -> date:
    """The day that a period begins with."""
    if period == "week":
        return date.fromisocalendar(int(label[:4]), int(label[6:]), 1)
    part = int(label[5:].strip("Q") or 1)
    return date(int(label[:4]), 3 * part - 2 if period == "quarter" else part, 1)


def count_periods(period: str, before: str, after: str) -> int:
    """How many periods later a label is than another one of its kind."""
    first, last = (find_first_day(period, label) for label in (before, after))
    if period == "week":
        return (last - first).days // 7
    return (12 * (last.year - first.year) + last.month - first.month) // {"year": 12, "quarter": 3, "month": 1}[period]


class Term(NamedTuple):
    """For which period of the calendar a grant is: of what kind, and which; and what earlier ones count for in all."""

    period: str
    label: str
    earlier: int = 0

    def follow(self, held: Self) -> Self:
        """This one, of somebody who had one of another kind: no earlier one, and with what those before it count for.

        If it reaches back to such as are over, all that they count for is spent in it: whoever chooses a grant by year
        after some months of that year loses no more in it than is granted for it.
        """
        since = find_first_day(held.period, held.label)
        label = max(self.label, name_period(self.period, since.isoformat()))
        return self._replace(label=label, earlier=0 if find_first_day(self.period, label) < since else held.earlier)


def count_over(term: Term, label: str, granted: int, spent: int, lost: bool) -> int:
    """What a period that is over counts for when another begins; where records are `lost`, those between count."""
    between = count_periods(term.period, term.label, label) - 1 if lost else 0
    return max(granted, spent) + between * granted


class Standing(NamedTuple):
    """What holds for a person: grant, name of the level, whether it is their own word, and what sources said.

    `said` has a pair for every dataset whose roster the person is on: its number, and its source's last word; `public`
    one for every dataset that has public columns, with what those say of the person.
    """

    code: int
    level: str | None = None
    own: bool = False
    said: tuple[tuple[int, str], ...] = ()
    public: tuple[tuple[int, str], ...] = ()
    #: Where the grant is one by period.
    term: Term | None = None
    #: Records were lost, and this person did not consent anew since: `losses`.
    lost: bool = False

    def heard(self, dataset: int | None, text: str | None) -> "Standing":
        """The same, on the roster of this dataset with that word of its source; None: no longer on it."""
        if dataset is None:
            return self
        others = [pair for pair in self.said if pair[0] != dataset]
        stays = self if text is not None else self.known_as(dataset, "")
        return stays._replace(said=tuple(sorted(others if text is None else [*others, (dataset, text)])))

    def known_as(self, dataset: int, public: str) -> "Standing":
        """The same, with what the public columns of this dataset say of the person; empty: it has none."""
        others = [pair for pair in self.public if pair[0] != dataset]
        return self._replace(public=tuple(sorted([*others, (dataset, public)] if public else others)))


#: What becomes of people who stand so (None: newcomers) and ask so (None: the source no longer lists them), and whether
#: a looser word of theirs waits for an act of the steward.
Decide = Callable[[Standing | None, Word | None], tuple[Standing, bool]]


def rank_openness(code: int) -> int:
    """A number that rises from the strictest code to the most open: withdrawn, grants, public."""
    return 1 << 63 if code == PUBLIC_CODE else code


class Settled(NamedTuple):
    """What words are held to: what names of levels mean, and the ceiling of every dataset, by number, as codes."""

    levels: Mapping[str, int]
    ceilings: Mapping[int, int]
    #: What datasets are called.
    names: Mapping[int, str] = MappingProxyType({})
    #: In what codes are.
    measure: Measure = PLAIN
    #: The period of levels that have one, and the present one of each kind.
    periods: Mapping[str, str] = MappingProxyType({})
    labels: Mapping[str, str] = MappingProxyType({})

    def keep_terms(self, decide: Decide, consents: bool) -> Decide:
        """The same, with the periods of grants: who keeps to one keeps what it counts for; who chooses one begins.

        Where nobody `consents`, neither the person nor the steward's act, the grant of who is known stays for good.
        """

        def settle(now: Standing | None, asked: Word | None) -> tuple[Standing, bool]:
            new, waits = decide(now, asked)
            period, held = self.periods.get(new.level or "") if new.code > 0 else None, now and now.term
            if period is None:
                return new._replace(term=None), waits
            if held is not None and held.period == period:
                return new._replace(term=held), waits
            if now is not None and not consents:
                return new._replace(level=now.level if now.code == new.code else None, term=None), True
            chosen = Term(period, self.labels[period])
            return new._replace(term=chosen if held is None else chosen.follow(held)), waits

        return settle

    def limit(self, asked: Word, now: Standing, dataset: int | None) -> Word:
        """The most that a source's word may come to, beside what the sources of the person's other rosters say."""
        others = [read_text(text, self.levels) for number, text in now.said if number != dataset]
        least = min([asked, *(one for one in others if one is not None)], key=lambda word: rank_openness(word.code))
        code = self._cut(least.code, now.heard(dataset, asked.text))
        return least if code == least.code else Word(code, None, least.said)

    def bind(self, now: Standing) -> Standing:
        """The same, where need be brought down to the least ceiling of the person's rosters."""
        code = self._cut(now.code, now)
        return now if code == now.code else now._replace(code=code, level=None)

    def waits(self, now: Standing, dataset: int) -> bool:
        """Whether the last word of a source is looser than what holds, and nothing but the steward's act is missing."""
        text = dict(now.said)[dataset]
        word = read_text(text, self.levels)
        if word is None or now.code == WITHDRAW_CODE or (now.own and not text.startswith(_WAITING)):
            return False
        return rank_openness(self.limit(word, now, dataset).code) > rank_openness(now.code)

    def _cut(self, code: int, now: Standing) -> int:
        ceilings = [self.ceilings[number] for number, _ in now.said if number in self.ceilings]
        return code if code == PUBLIC_CODE else min([code, *ceilings])


def by_source(dataset: int | None, settled: Settled, loosen: bool) -> Decide:
    """What a source may do; `loosen` says that looser words hold, too."""

    def decide(now: Standing | None, asked: Word | None) -> tuple[Standing, bool]:
        if now is None:
            assert asked is not None
            return settled.bind(Standing(asked.code, asked.level).heard(dataset, asked.text)), False
        now = _redefine(now, settled.levels)
        if asked is None:
            return now.heard(dataset, None), False
        before = dict(now.said).get(dataset or 0)
        heard = settled.bind(now.heard(dataset, asked.text))
        if heard.code == WITHDRAW_CODE:
            return heard, False
        looser = rank_openness(asked.code) > rank_openness(heard.code)
        repeated = not asked.said or before == asked.text
        if now.own and (repeated or (before is None and (looser or asked.code == heard.code))):
            return heard, False
        most = settled.limit(asked, heard, dataset) if looser else asked
        may = rank_openness(most.code) > rank_openness(heard.code)
        if looser and not (may and loosen):
            # A new word that waits against somebody's own must be new the next time as well.
            return (heard.heard(dataset, _WAITING + asked.text) if now.own else heard), may
        return heard._replace(code=most.code, level=most.level, own=False), False

    return settled.keep_terms(decide, loosen)


def by_person(settled: Settled, dataset: int | None = None) -> Decide:
    """What a person says, through a dataset, holds in both directions; an unknown one's waits for the day they join."""

    def decide(now: Standing | None, asked: Word | None) -> tuple[Standing, bool]:
        assert asked is not None
        said = () if now is None else tuple((number, text.removeprefix(_WAITING)) for number, text in now.said)
        new = Standing(asked.code, asked.level, True, said, () if now is None else now.public)
        _check_ceiling(new if said or dataset is None else new.heard(dataset, asked.text), settled)
        return new, False

    return settled.keep_terms(decide, True)


def _check_ceiling(new: Standing, settled: Settled) -> None:
    """No finite epsilon is above a ceiling that was registered: of all rosters that a person is on, the least."""
    most = settled.bind(new).code
    if most != new.code:
        name = next(settled.names[number] for number, _ in new.said if settled.ceilings.get(number) == most)
        what = f"This epsilon is above {settled.measure.grant(most):g}, the ceiling of {name!r}."
        rule = "The least ceiling holds of all datasets whose roster a person is on; of who is on none, this dataset's."
        hint = (Argument("ceiling", settled.measure.grant(new.code)), f" when {name!r} is registered, by the steward")
        raise PreferenceError(what, rule=rule, suggest=hint)


def _redefine(now: Standing, levels: Mapping[str, int]) -> Standing:
    """A level that means less now means less for everyone who has it; own words, too."""
    meant = now.code if now.level is None else levels.get(now.level, now.code)
    return now._replace(code=meant) if rank_openness(meant) < rank_openness(now.code) else now
