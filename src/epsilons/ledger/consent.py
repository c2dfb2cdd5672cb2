"""Whose word holds: what becomes of a person's standing when a source, or the person, says something.

Rules alone, without any database: they decide for a kind of people at a time, those who stand alike and ask alike.

- A stricter word holds at once, whoever says it.
- A looser word of a source waits for an act of the steward that names how many people it concerns.
- A person's own word stands until that person says otherwise, or until a source says something new about them. A
  source that no longer says anything is no word.
- Who withdrew stays away until they come back themselves.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

#: How a public grant, and a withdrawal, are written beside grants in nano-epsilon; no grant is 0.
PUBLIC_CODE, WITHDRAW_CODE = -1, 0


class Word(NamedTuple):
    """What is asked for: a grant in nano-epsilon, and the level's name if it was said by name.

    `said` is False for those who said nothing, so that a default applies.
    """

    code: int
    level: str | None = None
    said: bool = True

    @property
    def text(self) -> str:
        """By what a source's word is known again: names stay the same word when a level is redefined."""
        if not self.said:
            return ""
        return str(self.code) if self.level is None else f"={self.level}"


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


#: What becomes of people who stand so (None: newcomers) and ask so (None: the source no longer lists them).
Decide = Callable[[Standing | None, Word | None], Standing]


def rank_openness(code: int) -> int:
    """A number that rises from the strictest code to the most open: withdrawn, grants, public."""
    return 1 << 63 if code == PUBLIC_CODE else code


def by_source(dataset: int | None, levels: Mapping[str, int], loosen: bool) -> Decide:
    """What a source may do: `levels` are what names mean now, `loosen` says that looser words hold, too."""

    def decide(now: Standing | None, asked: Word | None) -> Standing:
        if now is None:
            assert asked is not None
            return Standing(asked.code, asked.level).heard(dataset, asked.text)
        now = _redefine(now, levels)
        if asked is None:
            return now.heard(dataset, None)
        heard, before = now.heard(dataset, asked.text), dict(now.said).get(dataset or 0)
        if now.code == WITHDRAW_CODE:
            return heard
        looser = rank_openness(asked.code) > rank_openness(now.code)
        repeated = not asked.said or before == asked.text
        if now.own and (repeated or (before is None and (looser or asked.code == now.code))):
            return heard
        if looser and not loosen:
            # A new word that waits must be new the next time as well.
            return now if now.own else heard
        return heard._replace(code=asked.code, level=asked.level, own=False)

    return decide


def by_person(now: Standing | None, asked: Word | None) -> Standing:
    """What a person says holds, in both directions; an unknown one's word waits for the day they join a dataset."""
    assert asked is not None
    return Standing(asked.code, asked.level, True, () if now is None else now.said)


def _redefine(now: Standing, levels: Mapping[str, int]) -> Standing:
    """A level that means less now means less for everyone who has it; own words, too."""
    meant = now.code if now.level is None else levels.get(now.level, now.code)
    return now._replace(code=meant) if rank_openness(meant) < rank_openness(now.code) else now


def waits(dataset: int | None, now: Standing, asked: Word, new: Standing) -> bool:
    """Whether this word of a source is looser than what holds now, and nothing but an act of the steward is missing."""
    if new.code == WITHDRAW_CODE or rank_openness(asked.code) <= rank_openness(new.code):
        return False
    return not now.own or (asked.said and dict(now.said).get(dataset or 0) not in (None, asked.text))
