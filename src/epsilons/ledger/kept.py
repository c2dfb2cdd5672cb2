"""Whose head is kept, a ledger's or an aggregator's store: in whose name a rollback is refused, and what the way on is.

The rule is the same for both, and stands once (`journal.Anchor`, `witness.Outside`): an older copy is refused.
"""

from dataclasses import dataclass

from epsilons.errors import EpsilonsError, LedgerError
from epsilons.ledger.values import UnusableLedgerError


@dataclass(frozen=True)
class Kept:
    """What has a journal, as refusals say it: `name` follows "This".

    `wrong` is raised where something else was asked for than there is, `error` where a copy is refused, `silent` where
    a witness cannot be reached. `twice` says what an older copy would do, `anew` what a new one in its place would,
    `before` what waits for the head; `newest` is what to use instead, `lost` what is left to do where that is gone,
    `alone` where the witness is; `settling` is how another witness is named.
    """

    name: str
    wrong: type[EpsilonsError]
    error: type[EpsilonsError]
    silent: type[EpsilonsError]
    twice: str
    before: str
    anew: str
    newest: str
    lost: str
    alone: str
    settling: str

    def unreached(self, what: str) -> EpsilonsError:
        """The error where a witness does not answer, or refuses for now."""
        return self.silent(
            what,
            rule=self.before,
            suggest="check that it is running; the same question again goes on from there; "
            f"if it is gone for good, {self.alone}",
        )


LEDGER = Kept(
    name="ledger",
    wrong=LedgerError,
    error=UnusableLedgerError,
    silent=UnusableLedgerError,
    twice="A ledger that was restored, forked or edited would spend budgets twice.",
    before="No data is read before the head is safe; what was charged stays charged.",
    anew="A new ledger in its place would let everyone's budget start anew.",
    newest="the newest copy of the ledger",
    lost="`epsilons ledger adopt LEDGER --accept-loss`",
    alone="`epsilons ledger adopt LEDGER --accept-loss --witness ANOTHER`",
    settling="`epsilons ledger witness {address} LEDGER`, to settle it",
)
