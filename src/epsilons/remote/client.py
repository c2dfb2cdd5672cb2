"""A gateway from outside: `eps.connect(address, key=...)`, and datasets that are asked there by the same methods.

    with eps.connect("https://stats.example.org", key=...) as remote:
        print(remote.dataset("wages").mean("wage", share=0.1))

A request that got no answer is sent again with the same Idempotency-Key: it is charged once, however often it is sent.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import stat
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import quote, urlsplit

from epsilons.arguments.options import TABLES
from epsilons.arguments.reading import Call, check_call, list_arguments
from epsilons.dataset.answers import Answers
from epsilons.dataset.asking import Asking
from epsilons.dataset.batch import Batch, Pending
from epsilons.dataset.documents import read_facts, write_arguments
from epsilons.dataset.facts import Description, TableFacts
from epsilons.dataset.question import parse_question
from epsilons.errors import Argument, EpsilonsError, PlanError, ProtocolError
from epsilons.ledger.balances import Balance, Remaining
from epsilons.ledger.values import Stored
from epsilons.measure import PURE, Measure
from epsilons.noise import system
from epsilons.release import Release
from epsilons.release.stored import StoredAnswers
from epsilons.remote.keys import is_key
from epsilons.remote.plans import RemoteBatchPlan, RemotePlan
from epsilons.remote.problems import read_problem
from epsilons.remote.progress import Progress, show_progress
from epsilons.storage import is_loopback
from epsilons.storage.exchange import Exchange, TooLongError, is_web_address

#: The variable that a key is taken from where none is given.
KEY_VARIABLE = "EPSILONS_KEY"
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
#: To connect, and to show that it is there; for a reply while it is; and how long a reply may be.
_SECONDS_FOR_A_SIGN, _SECONDS_FOR_A_REPLY, _MOST_BYTES = 5.0, 600.0, 1 << 30
#: Worked on, too many at once, or a server that is just starting: worth another try.
_LATER = (409, 429, 502, 503, 504)
#: Seconds after which a question is worth a line of progress, and between two looks at it.
_BEFORE_A_JOB, _BETWEEN_LOOKS = 2, 0.5
_NOTHING = object()


def read_key_file(path: str | os.PathLike[str]) -> str:
    """A key out of a file that only its owner may read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            open_to_others = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            key = file.read(1000).strip()
    except OSError as error:
        raise ProtocolError(f"The key cannot be read: {error.strerror}.", suggest="another path") from None
    if open_to_others:
        rule = "Whoever reads a key may ask with it."
        raise ProtocolError("Others may read the file of this key.", rule=rule, suggest="mode 0600")
    return key


def connect(
    address: str, *, key: str | None = None, patience: float = 60.0, progress: Progress | None = None
) -> Connection:
    """A gateway by its address, for whoever has a key of it.

    address: Where the gateway is, such as https://stats.example.org.
    key: What the steward handed out; from the environment (EPSILONS_KEY) unless given.
    patience: For so many seconds requests that got no answer are repeated.
    progress: Called with the seconds passed, and of how many, while a question is long.

    Without `progress` a long question shows how far it is where the errors go, if somebody sits there. The methods of a
    dataset there are those of a dataset here:

        with eps.connect("https://stats.example.org", key="eps_...") as remote:
            print(remote.dataset("wages").mean("wage", share=0.1))
    """
    return Connection(address, key=key, patience=patience, progress=progress)


class Connection:
    """A gateway, for whoever has a key of it. Requests that got no answer are repeated for `patience` seconds."""

    def __init__(
        self, address: str, *, key: str | None = None, patience: float = 60.0, progress: Progress | None = None
    ) -> None:
        self._progress = show_progress if progress is None else progress
        if not is_web_address(address):
            rule = "A host with its port and path, in plain letters and digits, without a user's name."
            raise ProtocolError("This is no address of a gateway.", rule=rule, suggest="https://stats.example.org")
        parts = urlsplit(address)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            rule = "Off this machine keys and answers are sent over HTTPS."
            raise ProtocolError("This address would send the key in the clear.", rule=rule, suggest="https://...")
        shown = os.environ.get(KEY_VARIABLE, "") if key is None else key
        if not is_key(shown):
            what = "There is no key." if not shown else "This is no key: a letter is wrong or missing."
            raise ProtocolError(what, rule="A key begins with eps_.", suggest=(Argument("key"), f", or {KEY_VARIABLE}"))
        self.address, self._patience = address.rstrip("/"), patience
        self._headers = {"Authorization": f"Bearer {shown}", "Content-Type": "application/json"}
        self._exchange = Exchange(self.address)

    def datasets(self) -> list[str]:
        """The names of what can be asked about."""
        return list(self.request("GET", "/v1/datasets")["datasets"])

    def dataset(self, name: str) -> RemoteDataset:
        """A dataset by name, with the methods of `Dataset` for asking."""
        return RemoteDataset(self, name)

    def request(self, method: str, path: str, document: Any = None, once: str | None = None) -> Any:
        """What the gateway replies, as JSON; a refusal is raised as the error that it is there.

        `once` names a request that must not be worked on twice.
        """
        body = None if document is None else json.dumps(document, allow_nan=False).encode()
        named = {} if once is None else {"Idempotency-Key": once, "Prefer": f"respond-async, wait={_BEFORE_A_JOB}"}
        status, read = self._patiently(method, path, body, {**self._headers, **named})
        while once is not None and status == 202:
            status, read = self._follow(read["job"])
            if status == 503 and isinstance(read, dict) and read.get("state") == "interrupted":
                # Its worker is gone: the same request goes on from what was charged.
                status, read = self._patiently(method, path, body, {**self._headers, **named})
        if status >= 300 and read is _NOTHING:
            what = f"No answer from {self.address} within {self._patience:g} s."
            raise ProtocolError(what, suggest="check that the gateway is running")
        if status >= 300:
            raise read_problem(read, status)
        return read

    def _follow(self, job: str) -> tuple[int, Any]:
        """Look at a job until it is over."""
        while True:
            status, read = self._patiently("GET", job, None, self._headers)
            if status != 202:
                self._progress(1.0, 1.0)
                return status, read
            self._progress(read["seconds"], read["of"])
            time.sleep(_BETWEEN_LOOKS)

    def _patiently(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Any]:
        """(status, JSON), of a request that is sent again while that is worth a try."""
        give_up, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                status, reply = self._once(method, path, body, headers)
            except ssl.SSLCertVerificationError as error:
                what = f"The certificate of {self.address} does not hold: {error.verify_message}."
                rule = "SSL_CERT_FILE in the environment names the certificates that are trusted."
                raise ProtocolError(what, rule=rule, suggest="ask its operator") from None
            except TooLongError:
                raise _unusable() from None
            except (OSError, http.client.HTTPException):
                status, reply = 503, b""
            read = _read_json(reply)
            # A refusal of the library has a code; what the gateway itself says may be otherwise in a moment.
            later = status in _LATER and not (isinstance(read, dict) and {"code", "state"} & set(read))
            if not later or time.monotonic() + wait > give_up:
                break
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        if status < 300 and reply and not isinstance(read, dict):
            raise _unusable()
        return status, read if reply else _NOTHING

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        return self._exchange.ask(
            method, path, body, headers, most=_MOST_BYTES, connect=_SECONDS_FOR_A_SIGN, every=_SECONDS_FOR_A_SIGN,
            until=time.monotonic() + _SECONDS_FOR_A_REPLY, silent=self._look,
        )  # fmt: skip

    def _look(self) -> None:
        """Whether the gateway is there at all, while a request is with it: it says at once that this needs a key."""
        seconds = _SECONDS_FOR_A_SIGN
        with closing(Exchange(self.address)) as beside:
            beside.ask(
                "GET", "/v1/me", None, most=_MOST_BYTES, connect=seconds, every=seconds,
                until=time.monotonic() + seconds,
            )  # fmt: skip

    def close(self) -> None:
        """Let go of the connection; the next request makes another."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _read_json(reply: bytes) -> Any:
    try:
        return json.loads(reply)
    except (ValueError, RecursionError):
        return None


class RemoteDataset(Asking):
    """A dataset behind a gateway: asked, planned and looked at by the methods of `Dataset`."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._path = connection, f"/v1/datasets/{quote(name, safe='')}"
        self._facts, self._described = self._look()
        self._charged = 0

    def _look(self) -> tuple[TableFacts, Description]:
        plain = self._connection.request("GET", self._path)
        try:
            return read_facts(plain, self._connection.address)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _unusable() from None

    def describe(self) -> Description:
        """Columns, people per level, bounds known. Public facts; no charge."""
        self._facts, self._described = self._look()
        return self._described

    def remaining(self) -> Remaining:
        """What everybody has left: `.levels`, of each the least as `.epsilons`; `.questions`."""
        plain = self._connection.request("GET", f"{self._path}/remaining")
        measure = Measure.of_text(plain.get("measure", PURE))
        levels = tuple(Balance(**level, measure=measure) for level in plain["levels"])
        return _Left((), dict(plain["questions"]), plain["not_dp_since"], measure=measure, balances=levels)

    def count_charged(self) -> int:
        """How many questions were charged so far, of those that were asked here."""
        return self._charged

    def answers(self, number: int | None = None) -> StoredAnswers:
        """Every answer that was released, by its number: free, newest last; or that one alone."""
        path = f"{self._path}/releases"
        if number is not None:
            return StoredAnswers([_read_stored(self._connection.request("GET", f"{path}/{int(number)}"))])
        return StoredAnswers(_read_stored(one) for one in self._connection.request("GET", path)["releases"])

    def release(self, number: int) -> Release:
        """One of them."""
        return self.answers(number)[number]

    @check_call("batch")
    def batch(self, share: float | None = None) -> Batch:
        """Several questions for one share, split where the error is least: `with people.batch(share=.2) as ask:`."""
        return RemoteBatch(self, share)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _send(self, way: str, document: Mapping[str, Any]) -> Any:
        once = system().bytes(16).hex() if way == "ask" else None
        reply = self._connection.request("POST", f"{self._path}/{way}", document, once)
        self._charged += reply.get("stored") is False
        return reply

    def _ask(self, call: Call, planned: Mapping[str, Any] | None = None) -> Release:
        """Send a call that was read here, and is read again there."""
        document = {**_write_call(call), **({} if planned is None else {"planned": planned})}
        return Release.from_dict(self._send("ask", document)["release"])

    def _plan(self, call: Call, past: bool) -> Any:
        document = _write_call(call)
        # A plan says itself what a question lacks.
        lacking = dict.fromkeys(list_arguments(call.entry, TABLES).required)
        document["arguments"] = {**lacking, **document["arguments"]}
        return RemotePlan(self._send("plan", {**document, "past": past}), self, call)

    def _is_answered(self, call: Call) -> bool:
        """A plan says so. Of what is asked fresh there is no answer yet, whichever request that will be."""
        return not call.options.fresh and bool(self._plan(call, past=False).answered)


def _write_call(call: Call) -> dict[str, Any]:
    return {"statistic": call.entry.name, "arguments": write_arguments(call.given)}


def _read_stored(plain: Mapping[str, Any]) -> Stored:
    release, answer = plain["release"], json.dumps(plain["release"]).encode()
    return Stored(plain["number"], release["at"], "", plain["question"], answer)


def _unusable() -> EpsilonsError:
    return ProtocolError("The reply is none of a gateway.", suggest="the address of a gateway of this version")


@dataclass(frozen=True)
class _Left(Remaining):
    """What is left, as the gateway adds it up: it sends levels, not cohorts."""

    balances: tuple[Balance, ...] = ()

    @property
    def levels(self) -> tuple[Balance, ...]:
        return self.balances


class RemoteBatch(Batch):
    """Collects questions here, SQL too; the gateway splits the share, and asks them all or none."""

    def __init__(self, people: Any, share: Any) -> None:
        super().__init__(people, share, people._facts)

    def _ask(self, call: Call) -> Pending:
        if self._over:
            raise PlanError("This batch is over.", suggest="a new batch")
        parse_question(call, self._facts)
        pending = Pending(self._name(call), self._people, call, False)
        self._asked[len(self._asked)] = [pending]
        return pending

    def _document(self) -> dict[str, Any]:
        if not self._asked:
            raise PlanError("This batch has no questions.", suggest="one question at least")
        questions = [_write_call(replace(one._call, given={**one._call.given, "name": one.name})) for one in self]
        return {"questions": questions, "share": float(self._share)}

    def plan(self) -> Any:
        """Who gets how much of the share, and the error to expect. Free."""
        people: Any = self._people
        return RemoteBatchPlan(people._send("plan", self._document()))

    def is_answered(self) -> bool:
        """Whether all of it was answered before, so that asking is free."""
        return bool(self.plan().answered)

    def ask(self) -> Answers:
        """Ask everything now."""
        people: Any = self._people
        document, self._over = self._document(), True
        found = {name: Release.from_dict(plain) for name, plain in people._send("ask", document)["answers"]}
        for pending in self:
            pending._release = found[pending.name]
        return self._answers()
