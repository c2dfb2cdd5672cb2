"""The store of a service: tables of its own in a file or a database, and what is said where they cannot be used."""

from collections.abc import Sequence
from functools import partial

from epsilons.errors import ProtocolError, Unusable
from epsilons.storage.base import Owner, Refusal, name_tables


class UnusableStoreError(Unusable, ProtocolError):
    """A store cannot be used, whatever was asked."""


def own_store(
    name: str, mark: str, tables: Sequence[str], refused: Refusal, *, example: str, survives: str, stays: str,
    pragmas: tuple[str, ...] = (),
) -> Owner:  # fmt: skip
    """Of an aggregator or a gateway; `survives` says what no crash may undo, `stays` what nobody else may change."""
    refusal = partial(partial, UnusableStoreError)
    return Owner(
        name=name,
        schema=name,
        mark=mark,
        tables=name_tables(tables),
        patience=60,
        pragmas=pragmas,
        refused=refused,
        broken=refused,
        replaced=refusal(f"Another file stands where the {name}'s store was opened, or none.", suggest="start it anew"),
        no_address=refusal(
            "There is no store at such an address.",
            rule="sqlite:///file, or postgresql://user:password@host/database, then perhaps ?schema= and a name.",
            suggest=example,
        ),
        no_psycopg=refusal("PostgreSQL needs psycopg.", suggest="pip install 'epsilons[postgres]'"),
        no_log=refusal("This disk cannot hold a store.", rule="SQLite's write-ahead log does not work there."),
        no_sync=refusal(
            "This server does not wait for the disk.", rule=survives, suggest="fsync = on in the server's settings"
        ),
        forked=refusal("A store in memory belongs to the process that opened it."),
        foreign=refusal("This file holds something else than a store.", suggest="a file of its own"),
        edited=refusal(f"Something in the {name}'s store cannot be read: it was edited or damaged."),
        altered=refusal(
            f"The tables of the {name}'s store have triggers, rules or views that no release of epsilons makes.",
            rule=stays,
        ),
        exposed=UnusableStoreError,
    )
