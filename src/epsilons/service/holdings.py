"""The datasets that a gateway serves: each opened once, opened anew when it was registered anew, asked turn by turn."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from epsilons.dataset import Dataset
from epsilons.errors import LedgerError
from epsilons.service.clock import Turns, slot_of


class Holding:
    """One dataset."""

    def __init__(self, opener: Callable[[], Dataset], file: str | None = None) -> None:
        #: The file that declares it, by which it is registered again.
        self.file = file
        self._opener, self.turns = opener, Turns()
        self.people = opener()
        self._former: Dataset | None = None

    @property
    def name(self) -> str:
        return self.people._facts.name

    def is_current(self) -> bool:
        """Whether it was not registered anew since it was opened."""
        registered = self.people._registry.registration
        return self.people.ledger.state(registered.dataset)[1] == registered.number

    def refresh(self) -> Dataset:
        """The dataset as it was registered last; whoever still looks at the one before may end that."""
        if not self.is_current():
            if self._former is not None:
                self._former.close()
            self._former, self.people = self.people, self._opener()
        return self.people

    def last_release(self) -> int:
        """The number of the newest release of its ledger."""
        return self.people.ledger.count("reservations")

    def slot(self, questions: int) -> float:
        """How long so many questions about it take, by public facts."""
        here = self.people.ledger.cohorts(self.people._registry.dataset)
        return slot_of(sum(cohort.people for cohort in here) * self.people._facts.rows, questions)

    def shows(self, number: int | None) -> bool:
        """Whether a release may be seen: not while the turn lasts that made it."""
        return self.turns.shown is None or number is None or number <= self.turns.shown

    def close(self) -> None:
        for one in (self._former, self.people):
            if one is not None:
                one.close()


def open_holdings(files: Sequence[str]) -> Mapping[str, Holding]:
    """The datasets that files declare, by name; each has a ledger that lasts."""
    found: dict[str, Holding] = {}
    try:
        for file in files:
            one = Holding(partial(Dataset.from_toml, file), file)
            taken = one.name in found
            if taken or not one.people.ledger.lasting:
                one.close()
                what = "Two datasets have one name." if taken else "A served dataset has a ledger that lasts."
                raise LedgerError(what, suggest='ledger = "sqlite:///people.ledger", and a name of its own')
            found[one.name] = one
    except BaseException:
        for one in found.values():
            one.close()
        raise
    return found
