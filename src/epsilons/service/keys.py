"""Who may come in: keys of stewards, analysts, people and operators. A key is shown once; what is kept is its hash.

A key has a role, and a name that answers are charged under (`analyst` in the ledger). That of a person also says of
which dataset and which person: it opens that account and no other. An operator sees how the server is doing, nothing
else. Links and what they are exchanged for are kept beside the keys: `sessions`.
"""

import hashlib
import json
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from epsilons.errors import ProtocolError
from epsilons.remote.keys import is_key, make_key
from epsilons.storage.base import Connection, Database

STEWARD, ANALYST, PERSON, OPERATOR = "steward", "analyst", "person", "operator"
ROLES = (STEWARD, ANALYST, PERSON, OPERATOR)
#: What a row of the table is: shown with every request, or exchanged for a cookie.
KEY, LINK = "key", "link"
LONGEST_NAME = 100


@dataclass(frozen=True)
class Holder:
    """Whose key it is, and what for."""

    number: int
    name: str
    role: str
    #: Of a person's key: the dataset, and the id in it.
    dataset: str | None = None
    person: Any = None
    made: str = ""
    revoked: str | None = None
    kind: str = KEY
    expires: str | None = None
    #: What state-changing requests have to repeat that come with a cookie.
    csrf: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """What is told of it: neither the key nor the person."""
        told = ("number", "kind", "name", "role", "dataset", "made", "expires", "revoked")
        return {name: getattr(self, name) for name in told}


class Keys:
    """The keys of a gateway, by its store."""

    def __init__(self, store: Database) -> None:
        self._store = store

    def add(self, name: str, role: str, dataset: str | None = None, person: Any = None) -> str:
        """A new key, which is shown this once. A name keeps its role: quotas and records are kept under it."""
        _check_name(name)
        if role not in ROLES:
            raise ProtocolError("There is no such role.", suggest=", ".join(ROLES))
        if (role == PERSON) != (dataset is not None and person is not None):
            rule = "A person's key opens one account of one dataset; other keys open none."
            raise ProtocolError("A dataset and an id go with the role person, and with no other.", rule=rule)
        key = make_key()
        with self._store.write() as connection:
            other = "SELECT 1 FROM keys WHERE name = :name AND (role <> :role OR role = 'person') AND revoked IS NULL"
            if connection.execute(other, {"name": name, "role": role}).fetchone() is not None:
                rule = "A name has one role, and a person's one key."
                raise ProtocolError(
                    "This name has a key already.", rule=rule, suggest="another name, or revoke it first"
                )
            insert(connection, key, KEY, name, role, dataset, person, None)
        return key

    def find(self, key: str) -> Holder | None:
        """Whose key this is; None if it is none, or was revoked."""
        if not is_key(key):
            return None
        with self._store.read() as connection:
            found = "SELECT * FROM keys WHERE digest = :digest AND kind = :kind AND revoked IS NULL"
            row = connection.execute(found, {"digest": digest_of(key), "kind": KEY}).fetchone()
            return None if row is None else read_holder(row)

    def list(self) -> list[Holder]:
        """Every key that was ever made, without the keys themselves."""
        with self._store.read() as connection:
            return [read_holder(row) for row in connection.execute("SELECT * FROM keys ORDER BY number").fetchall()]

    def revoke(self, number: int) -> Holder:
        """From now on the key opens nothing; it stays listed."""
        with self._store.write() as connection:
            row = connection.execute("SELECT * FROM keys WHERE number = :number", {"number": number}).fetchone()
            if row is None:
                raise ProtocolError("There is no key of this number.", suggest="epsilons keys list")
            at = row["revoked"] or now()
            connection.execute("UPDATE keys SET revoked = :at WHERE number = :number", {"at": at, "number": number})
            return replace(read_holder(row), revoked=at)

    def opens(self, number: int) -> bool:
        """Whether a key or link was not revoked so far."""
        with self._store.read() as connection:
            found = "SELECT 1 FROM keys WHERE number = :number AND revoked IS NULL"
            return connection.execute(found, {"number": number}).fetchone() is not None

    def asks(self, name: str) -> bool:
        """Whether a key of this name, also one that was revoked, is or was for asking."""
        with self._store.read() as connection:
            found = "SELECT 1 FROM keys WHERE name = :name AND role IN ('steward', 'analyst')"
            return connection.execute(found, {"name": name}).fetchone() is not None


def _check_name(name: object) -> None:
    """Names are read by people, in lists and in quotas: two that look alike must be one."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        rule = f"Letters, digits, signs and spaces, at most {LONGEST_NAME}."
        raise ProtocolError("This is no name for a key.", rule=rule, suggest="statistics office")
    if name != " ".join(unicodedata.normalize("NFKC", name).split()):
        rule = "No space at either end, single ones between, and letters in their plain form (NFKC)."
        raise ProtocolError("This name is written in an odd way.", rule=rule, suggest="statistics office")


def insert(
    connection: Connection,
    key: str,
    kind: str,
    name: str,
    role: str,
    dataset: str | None,
    person: Any,
    expires: str | None,
) -> int:
    """Keep a key or a link by its hash; its number."""
    last = connection.execute("SELECT coalesce(max(number), 0) FROM keys").fetchone()[0]
    row = {
        "number": last + 1, "kind": kind, "name": name, "role": role, "digest": digest_of(key), "dataset": dataset,
        "person": None if person is None else json.dumps(person), "made": now(), "expires": expires,
    }  # fmt: skip
    values = ", ".join(f":{one}" for one in row)
    connection.execute(f"INSERT INTO keys ({', '.join(row)}) VALUES ({values})", row)
    return int(row["number"])


def digest_of(key: str) -> bytes:
    """A key has 160 random bits, so that a plain hash cannot be undone by trying."""
    return hashlib.sha256(key.encode()).digest()


def read_holder(row: Any) -> Holder:
    person = None if row["person"] is None else json.loads(row["person"])
    named = {name: row[name] for name in ("number", "kind", "name", "role", "dataset", "made", "expires", "revoked")}
    return Holder(**named, person=person)


def now(later: timedelta = timedelta()) -> str:
    """The time, or a later one, as it is kept and compared."""
    return (datetime.now(UTC) + later).isoformat(timespec="seconds")
