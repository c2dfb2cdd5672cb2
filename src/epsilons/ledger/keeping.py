"""What is done with a ledger as a whole: it is copied, it ends, a witness keeps its head."""

from contextlib import AbstractContextManager
from typing import Any

from epsilons.ledger import copying, journal, statements, values, witness
from epsilons.ledger.journal import write_time
from epsilons.ledger.opening import set_witness
from epsilons.ledger.witness import Outside
from epsilons.storage.base import Connection


class Keeping:
    """Of a Ledger, which is made of this."""

    _outside: Outside | None

    def copy(self: Any, path: str) -> None:
        """A copy of a ledger in a new file, as it stands, for its owner alone."""
        copying.copy_to_file(self._database, path)

    def reading(self: Any) -> AbstractContextManager[Connection]:
        """One consistent view of its tables."""
        view: AbstractContextManager[Connection] = self._database.read()
        return view

    def end(self: Any, state: str) -> None:
        """No question is charged here any more: it is `values.MOVED`, or `RETIRED`. Said again, nothing changes."""
        with self._writing("enrolling", "enrolled") as connection:
            before = statements.read_ending(connection)
            if before is None:
                connection.execute("UPDATE ledger SET state = :state", {"state": state})
                journal.append(connection, "end", write_time(self._clock), {"state": state})
            elif before != state:
                raise values.has_ended(before)

    def set_witness(self: Any, address: str) -> None:
        """From now on the head is kept by the witness at this address, for every client of this ledger."""
        settled = witness.settle(address)
        with self._writing("enrolling", "enrolled") as connection:
            set_witness(connection, write_time(self._clock), self.id, self.salt, settled).close()
        # By whom its own line is known from now on.
        with self._writing("enrolling", "enrolled"):
            pass
