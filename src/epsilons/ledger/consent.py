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
from types import MappingProxyType
from typing import NamedTuple

from epsilons.errors import Argument, PreferenceError
from epsilons.guarantee import to_epsilon

#: How a public grant, and a withdrawal, are written beside grants in nano-epsilon; no grant is 0.
PUBLIC_CODE, WITHDRAW_CODE = -1, 0
#: How a source's word is written: a level by its name, a default for who said nothing, a new word that waits.
_LEVEL, _DEFAULT, _WAITING = "=", "~", "?"


class Word(NamedTuple):
    """What is asked for: a grant in nano-epsilon, and the level's name if it was said by name.

    `said` is False for those who said nothing, so that a default applies: an epsilon, or a level by its name.
    """

    code: int
    level: str | None = None
    said: bool = True

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


class Standing(NamedTuple):
    """What holds for a person: grant, name of the level, whether it is their own word, and what sources said.

    `said` has a pair for every dataset whose roster the person is on: its number, and its source's last word.
    """

    code: int
    level: str | None = None
    own: bool = False
    said: tuple[tuple[int, str], ...] = ()

    def heard(self, dataset: int | None, text: str | None) -> "Standing":
        """The same, on the roster of this dataset with that word of its source; None: no longer on it."""
        if dataset is None:
            return self
        others = [pair for pair in self.said if pair[0] != dataset]
        return self._replace(said=tuple(sorted(others if text is None else [*others, (dataset, text)])))


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

    return decide


def by_person(settled: Settled, dataset: int | None = None) -> Decide:
    """What a person says, through a dataset, holds in both directions; an unknown one's waits for the day they join."""

    def decide(now: Standing | None, asked: Word | None) -> tuple[Standing, bool]:
        assert asked is not None
        said = () if now is None else tuple((number, text.removeprefix(_WAITING)) for number, text in now.said)
        new = Standing(asked.code, asked.level, True, said)
        _check_ceiling(new if said or dataset is None else new.heard(dataset, asked.text), settled)
        return new, False

    return decide


def _check_ceiling(new: Standing, settled: Settled) -> None:
    """No finite epsilon is above a ceiling that was registered: of all rosters that a person is on, the least."""
    most = settled.bind(new).code
    if most != new.code:
        name = next(settled.names[number] for number, _ in new.said if settled.ceilings.get(number) == most)
        what = f"This epsilon is above {to_epsilon(most):g}, the ceiling of {name!r}."
        rule = "The least ceiling holds of all datasets whose roster a person is on; of who is on none, this dataset's."
        hint = (Argument("ceiling", to_epsilon(new.code)), f" when {name!r} is registered, by the steward")
        raise PreferenceError(what, rule=rule, suggest=hint)


def _redefine(now: Standing, levels: Mapping[str, int]) -> Standing:
    """A level that means less now means less for everyone who has it; own words, too."""
    meant = now.code if now.level is None else levels.get(now.level, now.code)
    return now._replace(code=meant) if rank_openness(meant) < rank_openness(now.code) else now
