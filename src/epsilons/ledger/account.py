"""One person's account, as a value and in plain language."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from epsilons.guarantee import to_epsilon
from epsilons.ledger.base import WITHDRAWN, mark_words


@dataclass(frozen=True)
class Use:
    """A question that charged this person: what it cost them at most, of what they granted at that time."""

    number: int
    kind: str
    at: str
    charge: int
    granted: int


@dataclass(frozen=True)
class Statement:
    """One person's account: what their data was used for, at most how much it cost, and what is left.

    `releases` lists (number, kind, charge) of every question that charged them, `uses` the same with its time and the
    grant in force then; `when_public` those asked while they were public, which promise them nothing. `written_off`
    counts as spent since a loss of the ledger's newest records was accepted.
    """

    granted: int | None
    state: str
    spent: int
    reserved: int
    left: int | None
    releases: tuple[tuple[int, str, int], ...]
    when_public: tuple[int, ...]
    not_dp_since: int | None = None
    uses: tuple[Use, ...] = ()
    written_off: int = 0

    @property
    def used(self) -> int:
        """How many questions used this person's data at a charge."""
        return len(self.releases)

    @property
    def caveat(self) -> str:
        """The permanent mark of individual privacy, or nothing."""
        return mark_words(self.not_dp_since)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The account in plain language."""
        return tuple(part for part in (self._use(), self._balance(), self._public(), self._lost(), self.caveat) if part)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _use(self) -> str:
        words = f"Used in {_many(self.used, 'question')}"
        kinds = Counter(kind for _, kind, _ in self.releases)
        if kinds:
            words += f" ({', '.join(f'{times} × {kind}' for kind, times in sorted(kinds.items()))})"
        gone = self.spent + self.reserved - self.written_off
        words += f", at a loss of at most {to_epsilon(gone):.6g}"
        if self.state == WITHDRAWN or self.granted is None:
            return f"{words}."
        return f"{words} of {to_epsilon(self.granted):.6g} granted ({_percent(gone, self.granted)})."

    def _balance(self) -> str:
        if self.state == WITHDRAWN:
            return "Withdrawn: not used any more."
        if self.granted is None:
            return "Public now: nothing is promised."
        if not self.left:
            return "Left: 0, so not used any more."
        return f"Left: {to_epsilon(self.left):.6g}."

    def _public(self) -> str:
        if not self.when_public:
            return ""
        which = ", ".join(map(str, self.when_public))
        return f"Asked while public, with nothing promised: release{'s' * (len(self.when_public) > 1)} {which}."

    def _lost(self) -> str:
        if not self.written_off:
            return ""
        return f"Records were lost, so {to_epsilon(self.written_off):.6g} more counts as spent."


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _percent(part: int, whole: int) -> str:
    return f"{float(Fraction(100 * part, whole)):.3g}%"
