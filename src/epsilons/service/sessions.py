"""How people come in with a browser: by a personal link, which a steward gives them, or by a key, for a cookie.

A link is shown once, opens one person's account, expires, and ends when the person is given another. The cookie is
signed, HttpOnly and SameSite=Strict; off this machine it is Secure. Of both only a hash is kept, so that whoever reads
the store can make neither: the signature spares a look at the store, the hash is what counts. A request that changes
something and comes with a cookie repeats a word that no other site can read.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlsplit

from epsilons.arguments.checks import check_whole
from epsilons.dataset.registry import Registry
from epsilons.errors import ProtocolError
from epsilons.noise import system
from epsilons.remote.keys import is_key, make_key
from epsilons.service.keys import LINK, OPERATOR, PERSON, Holder, digest_of, insert, now, read_holder
from epsilons.storage import is_loopback
from epsilons.storage.base import Database

#: How long a link can be used, unless said otherwise and at most; and a cookie.
DAYS, MOST_DAYS, _COOKIE = 14, 90, timedelta(hours=12)
#: Cookies of one link at a time, and of a key, which an office may share; the oldest give way.
_MOST_COOKIES, _MOST_OF_A_KEY = 8, 64
_NAME = "epsilons"
#: Where a link leads to. What follows # is not sent: it stands in no log.
ENTRANCE = "/enter"
CSRF_HEADER = b"x-csrf-token"


@dataclass(frozen=True)
class Link:
    """A personal link, as it is shown once."""

    number: int
    path: str
    expires: str


class Sessions:
    """Links and cookies, by a gateway's store."""

    def __init__(self, store: Database) -> None:
        self._store = store
        with store.write() as connection:
            row = connection.execute("SELECT secret FROM signing").fetchone()
            self._secret = system().bytes(32) if row is None else bytes(row[0])
            if row is None:
                connection.execute("INSERT INTO signing VALUES (:secret)", {"secret": self._secret})

    def issue(self, registry: Registry, dataset: str, person: object, days: object = DAYS) -> Link:
        """A link for one person, who has an account; the one before ends."""
        wrong = ProtocolError("A link lasts for whole days.", rule=f"From 1 to {MOST_DAYS}.", suggest=f"{DAYS} days")
        lasts = timedelta(days=check_whole(days, least=1, most=MOST_DAYS, refusal=wrong))
        registry.statement(person)  # refuses who has none
        # One name however the id is written; it says nothing to whoever has not the ledger.
        name = f"account {registry.find_people([person])[0].tobytes().hex()[:16]}"
        token, expires = make_key(), now(lasts)
        with self._store.write() as connection:
            before = "UPDATE keys SET revoked = :at WHERE name = :name AND dataset = :dataset AND kind = :kind"
            which = {"at": now(), "name": name, "dataset": dataset, "kind": LINK}
            connection.execute(f"{before} AND revoked IS NULL", which)
            number = insert(connection, token, LINK, name, PERSON, dataset, person, expires)
        return Link(number, f"{ENTRANCE}#{token}", expires)

    def exchange(self, link: str) -> tuple[Holder, str] | None:
        """Who comes by a link or key, and the value of a cookie for them; None if it opens nothing (any more)."""
        if not is_key(link):
            return None
        with self._store.read() as connection:  # so that guesses do not wait for the writers' lock
            found = (
                "SELECT * FROM keys WHERE digest = :digest AND revoked IS NULL AND (expires IS NULL OR expires > :now)"
            )
            row = connection.execute(found, {"digest": digest_of(link), "now": now()}).fetchone()
        if row is None or row["role"] == OPERATOR:  # a program's, which keeps its key
            return None
        holder, token = read_holder(row), make_key()
        with self._store.write() as connection:
            connection.execute("DELETE FROM sessions WHERE expires <= :now", {"now": now()})
            own = "SELECT digest FROM sessions WHERE number = :number ORDER BY expires DESC"
            most = _MOST_COOKIES if holder.kind == LINK else _MOST_OF_A_KEY
            for (digest,) in connection.execute(own, {"number": holder.number}).fetchall()[most - 1 :]:
                connection.execute("DELETE FROM sessions WHERE digest = :digest", {"digest": digest})
            ends = min(now(_COOKIE), holder.expires or now(_COOKIE))
            made = {"digest": digest_of(token), "number": holder.number, "expires": ends}
            connection.execute("INSERT INTO sessions VALUES (:digest, :number, :expires)", made)
        return replace(holder, csrf=self._sign("csrf", token)), f"{token}.{self._sign('cookie', token)}"

    def find(self, cookie: str) -> Holder | None:
        """Whose cookie this is; None if it is none, has expired, or its link was revoked."""
        if (token := self._read(cookie)) is None:
            return None
        with self._store.read() as connection:
            found = """
            SELECT keys.* FROM sessions JOIN keys ON keys.number = sessions.number
            WHERE sessions.digest = :digest AND sessions.expires > :now AND revoked IS NULL"""
            row = connection.execute(found, {"digest": digest_of(token), "now": now()}).fetchone()
        return None if row is None else replace(read_holder(row), csrf=self._sign("csrf", token))

    def end(self, cookie: str) -> None:
        """From now on the cookie opens nothing; its link still does."""
        if (token := self._read(cookie)) is not None:
            with self._store.write() as connection:
                connection.execute("DELETE FROM sessions WHERE digest = :digest", {"digest": digest_of(token)})

    def _read(self, cookie: str) -> str | None:
        token, _, signature = cookie.partition(".")
        signed = hmac.compare_digest(signature.encode(), self._sign("cookie", token).encode())
        return token if signed and is_key(token) else None

    def _sign(self, purpose: str, token: str) -> str:
        return hmac.new(self._secret, f"{purpose} {token}".encode(), hashlib.sha256).hexdigest()


# Cookies and where requests come from ---------------------------------------------------------------------------------


def is_secure(scheme: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a cookie must be sent over HTTPS: always, but on this machine without HTTPS."""
    try:
        host = urlsplit(f"//{headers.get(b'host', b'').decode('latin-1')}").hostname
    except ValueError:
        host = None
    return scheme == "https" or not is_loopback(host or "")


def read_cookie(headers: Mapping[bytes, bytes], secure: bool) -> str:
    """The value of our cookie; empty if there is none."""
    wanted = _name(secure)
    pairs = (pair.strip().partition("=") for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


def set_cookie(value: str, secure: bool) -> tuple[str, str]:
    """The header that sets it, or ends it where the value is empty."""
    lasts = int(_COOKIE.total_seconds()) if value else 0
    told = f"{_name(secure)}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict"
    return "set-cookie", told + ("; Secure" if secure else "")


def _name(secure: bool) -> str:
    """Browsers take a cookie with this prefix only from the very host, over HTTPS."""
    return f"__Host-{_NAME}" if secure else _NAME


def is_from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that another site's page sent a request."""
    if b"sec-fetch-site" in headers:
        return headers[b"sec-fetch-site"] not in (b"same-origin", b"none")
    if b"origin" not in headers:
        return False
    _, _, origin = headers[b"origin"].partition(b"://")
    return not origin or origin.lower() != headers.get(b"host", b"").lower()
