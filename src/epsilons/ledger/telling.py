"""What a ledger tells, at no charge: what is left to whom, what was asked and answered, and its journal."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from epsilons.ledger import checks, personal, statements, values
from epsilons.ledger.balances import Remaining, Statement
from epsilons.ledger.journal import Head
from epsilons.storage.base import Connection, Database

_PAGE = 1000
_T = TypeVar("_T")


class Telling:
    """Of a Ledger, which is made of this."""

    _database: Database
    _seeded: int | None

    if TYPE_CHECKING:

        def _read(self, read: Callable[[Connection], _T]) -> _T: ...

        def _get_head(self) -> Head | None: ...

    def quotas(self) -> tuple[values.Quota, ...]:
        """What every analyst may use and has used, by name. For fairness only."""
        return self._read(statements.list_quotas)

    def remaining(self, dataset: int | None = None, *, present: bool = False) -> Remaining:
        """What is left at every granted level, in each cohort, and in questions like the last one.

        `present` leaves out people who are on the roster of no dataset, and says how many they are.
        """
        return self._read(partial(statements.read_remaining, seeded=self._seeded, dataset=dataset, present=present))

    def history(self, dataset: int | None = None) -> values.History:
        """Every question that was ever charged, with the grants in force then; or those about a dataset."""
        return self._read(partial(statements.read_history, seeded=self._seeded, dataset=dataset))

    def answers(self, number: int | None = None, dataset: int | None = None) -> tuple[values.Stored, ...]:
        """Every answer that was ever stored, newest last, whoever joined or left since; or a number's, a dataset's."""
        read = partial(statements.read_answers, number=number, dataset=dataset, head=self._get_head())
        return self._read(read)

    def statement(self, person: bytes) -> Statement:
        """One person's account."""
        digest = checks.check_digest(person)
        return self._read(partial(personal.read_statement, digest=digest, seeded=self._seeded))

    def export(self) -> Iterator[dict[str, int | str]]:
        """The journal, line by line, as it is hashed: enough to recount every balance elsewhere."""
        page, last = "SELECT * FROM journal WHERE seq > :last ORDER BY seq LIMIT :page", 0
        while True:
            # Page by page, so that a slow reader holds no transaction; lines never change once they stand.
            with self._database.read() as connection:
                lines = connection.execute(page, {"last": last, "page": _PAGE}).fetchall()
            yield from map(dict, lines)
            if len(lines) < _PAGE:
                return
            last = lines[-1]["seq"]
