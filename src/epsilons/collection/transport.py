"""From owners to aggregators: an answer becomes one sealed share for each of them, before anything leaves; a courier
takes the shares there; `HttpAggregator` is an aggregator behind HTTP.

Every request may be repeated without harm, so one that got no answer is sent again, at growing intervals, until
`patience` seconds have passed: an aggregator that is killed and started again is just slow. One that says nothing while
a request is with it is asked beside it whether it is there at all: if so, it is at work, and is waited for much longer.
`told` gets a line that names it at once.
"""

import http.client
import itertools
import json
import queue
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_between
from epsilons.collection import reports as wire
from epsilons.collection.reports import STORED, Report
from epsilons.collection.sealing import ID_BYTES, SealingKey, purpose
from epsilons.collection.terms import Collection, Place, check_address
from epsilons.errors import Argument, DataError, EpsilonsError, PlanError, ProtocolError
from epsilons.local.base import read_truths
from epsilons.noise import Entropy, system
from epsilons.storage import is_loopback
from epsilons.storage.exchange import Exchange, TooLongError, give_up

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0
#: To connect, and to say its key, by which it shows that it is there. While it is: for a reply, and for all that it has
#: to be listed, checked or added up.
_SECONDS_FOR_A_SIGN, _SECONDS_FOR_A_REPLY, _SECONDS_AT_WORK = 5.0, 600.0, 3600.0
#: How often it is told that one is still at work.
_SECONDS_BETWEEN_LINES = 60.0
_MOST_PATIENCE = 86_400
#: The largest reply that is read: lists of ids and words of proofs grow with the reports, all else is short. And how
#: much of a refusal is told. Whoever replies need not be honest.
_MOST_LISTED, _MOST_SAID, _MOST_TOLD = 1 << 30, 1 << 20, 300
#: Reports are sent in requests of about this size, well below what an aggregator takes.
_BYTES_AT_ONCE = 1 << 20
#: So many batches wait for a slow aggregator before the sender waits as well.
_WAITING = 8
Told = Callable[[str], None]
#: [round][aggregator] -> the reports of some owners, in their order.
Reports = list[list[list[Report]]]
_WORDS_AT_ONCE = 1 << 20
_KEY = "/v1/key"


class OwnerClient:
    """Makes reports for one collection, for one owner or for many.

    A report must be made once and kept until every aggregator has acknowledged it: sending the same bytes again is
    harmless, while a second report of the same answer counts, and costs the owner's epsilon, a second time.
    """

    def __init__(self, collection: Collection, *, entropy: Entropy | None = None) -> None:
        self.collection = collection
        self._entropy = system() if entropy is None else entropy
        self._keys = [SealingKey.from_text(place.key) for place in collection.aggregators]

    def report(self, answer: str, level: str | None = None) -> Reports:
        """One owner's reports: for each round, one per aggregator."""
        truth = self.collection.survey.truth(answer)
        if truth is None:
            raise DataError("This answer is none of the survey's.", rule="A label or a number.", suggest="an option")
        return self.reports([truth], self.collection.level(level))

    def reports(self, truths: Any, levels: Any = 0) -> Reports:
        """Many owners' reports: truths are 0 (none) or 1..options, levels the numbers of their levels."""
        answers, _ = read_truths(truths, len(self.collection.survey.options))
        chosen = np.broadcast_to(np.asarray(levels, dtype=np.int64), answers.shape)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self.collection.levels):
            raise DataError("A level is unknown.", rule=f"From 0 to {len(self.collection.levels) - 1}.", suggest="0")
        protocol = self.collection.survey.protocol
        rounds = (answers,) if protocol is None else protocol.respond(answers, entropy=self._entropy)
        made: Reports = [[[] for _ in self._keys] for _ in rounds]
        raw = self._entropy.bytes(ID_BYTES * len(answers))
        ids = [raw[start : start + ID_BYTES] for start in range(0, len(raw), ID_BYTES)]
        shape = self.collection.shape
        chunk = max(1, _WORDS_AT_ONCE // shape.words)
        for number, start in itertools.product(range(len(rounds)), range(0, len(answers), chunk)):
            some = rounds[number][start : start + chunk].astype(np.int64)
            proved = shape.prove(some, wire.uniform_words(self._entropy, len(some)))
            for owner, vector in enumerate(proved, start):
                for place, report in enumerate(self._seal(vector, ids[owner], number + 1, int(chosen[owner]))):
                    made[number][place].append(report)
        return made

    def _seal(self, vector: NDArray[np.uint64], report: bytes, round_number: int, level: int) -> list[Report]:
        places = range(len(self._keys))
        purposes = [purpose(self.collection.id, place, round_number, level, report) for place in places]
        raw = self._entropy.bytes(wire.SEED_BYTES * (len(purposes) - 1))
        seeds = [raw[start : start + wire.SEED_BYTES] for start in range(0, len(raw), wire.SEED_BYTES)]
        pieces = wire.split_vector(vector, purposes, wire.explicit_place(report, len(purposes)), seeds)
        each = zip(self._keys, pieces, purposes, strict=True)
        return [Report(report, round_number, level, key.seal(piece, what_for)) for key, piece, what_for in each]


class HttpAggregator:
    """Has the methods of `Aggregator`. `token` is the coordinator's; owners need none. One instance, one thread.

    Off this machine it speaks HTTPS; `insecure` allows plain HTTP, where everybody on the way can read the token and
    answer in the aggregator's place.
    """

    def __init__(
        self, url: str, *, token: str | None = None, patience: float = 60.0, insecure: bool = False,
        told: Told = lambda _: None,
    ) -> None:  # fmt: skip
        check_address(url)
        self.url, self._told, parts = url, told, urlsplit(url)
        wrong = PlanError("patience is a number of seconds, 0 to 86,400.", suggest=Argument("patience", 60))
        self._patience = check_between(patience, 0, _MOST_PATIENCE, wrong, ends=True)
        if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
            rule = "Off this machine aggregators are spoken to over HTTPS."
            hint = ("https://..., or ", Argument("insecure", True), " if others on the way may read and answer")
            raise ProtocolError(f"{url} is plain HTTP.", rule=rule, suggest=hint)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._exchange = Exchange(url)

    def key(self) -> str:
        """The key that owners seal to, as the aggregator itself says."""
        return str(_entry(self._ask("GET", _KEY), "key", str))

    def enter(self, document: Any) -> bytes:
        collection = Collection.from_dict(document).id
        reply = self._ask("PUT", _path(collection), json.dumps(document).encode())
        if _entry(reply, "id", str) != collection.hex():
            raise ProtocolError("An aggregator understood other terms.", rule="One id everywhere.")
        return collection

    def status(self, collection: bytes) -> dict[str, Any]:
        reply = self._ask("GET", _path(collection))
        counts = _entry(reply, "reports", dict)
        if not all(isinstance(count, int) for count in counts.values()):
            raise _unusable()
        return {"round": _entry(reply, "round", int), "rounds": _entry(reply, "rounds", int), "reports": counts}

    def take(self, collection: bytes, offered: Sequence[Report]) -> list[str]:
        refused: dict[str, str] = {}
        for some in _divide(offered):
            body = self._ask("POST", f"{_path(collection)}/reports", wire.write_reports(some), outcomes=True)
            try:
                refused |= {str(item["id"]): str(item["reason"]) for item in _entry(body, "refused", list)}
            except (KeyError, TypeError):
                raise _unusable() from None
        return [refused.get(report.id.hex(), STORED) for report in offered]

    def close(self, collection: bytes, round_number: int) -> bytes:
        return self._ask("POST", f"{_path(collection)}/rounds/{round_number}/close")

    def present(self, collection: bytes, level: int) -> bytes:
        return self._ask("GET", f"{_path(collection)}/levels/{level}/present", most=_MOST_LISTED)

    def accepted(self, collection: bytes, level: int) -> bytes | None:
        return self._ask("GET", f"{_path(collection)}/levels/{level}/accepted", most=_MOST_LISTED) or None

    def check(self, collection: bytes, level: int, challenge: bytes, ids: bytes) -> bytes:
        return self._ask("POST", f"{_path(collection)}/levels/{level}/check", challenge + ids, most=_MOST_LISTED)

    def collect(self, collection: bytes, level: int, ids: bytes) -> bytes:
        return self._ask("POST", f"{_path(collection)}/levels/{level}/collect", ids, most=_MOST_LISTED)

    def shut(self) -> None:
        self._exchange.close()

    def _ask(
        self, method: str, path: str, body: bytes = b"", *, outcomes: bool = False, most: int = _MOST_SAID
    ) -> bytes:
        waiting, wait = _Waiting(self.url, self._patience, self._told, most), _FIRST_WAIT
        while True:
            try:
                status, reply = waiting.ask(self._exchange, method, path, body, self._headers)
                why = f"status {status}"
            except ssl.SSLCertVerificationError as error:
                what = f"The certificate of the aggregator at {self.url} does not hold: {error.verify_message}."
                raise ProtocolError(what, suggest="ask its operator") from None
            except TooLongError:
                raise _unusable() from None
            except (OSError, http.client.HTTPException) as error:
                quiet = isinstance(error, TimeoutError)
                why = "it says nothing" if quiet else getattr(error, "strerror", None) or type(error).__name__
                status, reply = 503, b""
            if status < 500:
                break
            waiting.go_on(why, wait)
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        if status < 300:
            return reply
        try:
            document = json.loads(reply)
            title, detail = str(document["title"])[:_MOST_TOLD], str(document.get("detail", ""))[:_MOST_TOLD]
        except (ValueError, KeyError, TypeError, RecursionError):
            document, title, detail = {}, f"An aggregator refused with status {status}.", ""
        if outcomes and isinstance(document, dict) and "refused" in document:
            return reply
        raise ProtocolError(title, rule=detail)


class _Waiting:
    """How long one request is worth waiting for, however often it is sent; and what is told meanwhile."""

    def __init__(self, url: str, patience: float, told: Told, most: int) -> None:
        self._url, self._patience, self._told, self._most = url, patience, told, most
        self._begun = self._heard = self._line = time.monotonic()
        self._in_all = max(_SECONDS_AT_WORK if most == _MOST_LISTED else _SECONDS_FOR_A_REPLY, patience)
        self._named = False

    def ask(
        self, exchange: Exchange, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """(status, content), from an aggregator that is there until then."""
        seconds = min(_SECONDS_FOR_A_SIGN, max(self._patience, 1.0))
        silent, until = self._look, self._begun + self._in_all
        if path == _KEY:  # which says no more than that it is there, and takes no time
            silent, until = give_up, time.monotonic() + 2 * seconds
        return exchange.ask(
            method, path, body, headers, most=self._most, connect=seconds, every=seconds, until=until, silent=silent
        )

    def go_on(self, why: str, wait: float) -> None:
        """Name who did not answer; an error, if that was long enough."""
        now = time.monotonic()
        if now + wait > self._heard + self._patience:
            what = f"No answer from the aggregator at {self._url} within {self._patience:g} s."
            raise ProtocolError(what, suggest="check that it is running")
        if now + wait > self._begun + self._in_all:
            what = f"The aggregator at {self._url} is there, but has not answered within {self._in_all:g} s."
            raise ProtocolError(what, suggest="ask its operator; the same command goes on from there")
        if not self._named:
            self._told(f"No answer from the aggregator at {self._url} ({why}); trying for {self._patience:g} s.")
            self._named = True

    def _look(self) -> None:
        """Whether it is there at all, while a request is with it."""
        beside, now = Exchange(self._url), time.monotonic()
        seconds = min(_SECONDS_FOR_A_SIGN, max(self._heard + self._patience - now, 0.1))
        try:
            beside.ask("GET", _KEY, None, most=_MOST_SAID, connect=seconds, every=seconds, until=now + seconds)
        except (OSError, http.client.HTTPException, TooLongError):
            self.go_on("it says nothing", 0)
            return
        finally:
            beside.close()
        self._heard = time.monotonic()
        self._named = False
        if self._heard > self._line + _SECONDS_BETWEEN_LINES:
            self._line = self._heard
            self._told(f"The aggregator at {self._url} is at work ({self._heard - self._begun:.0f} s).")


def _divide(reports: Sequence[Report]) -> Iterator[Sequence[Report]]:
    """In requests that an aggregator takes."""
    start = size = 0
    for end, report in enumerate(reports):
        size += len(report.sealed)
        if end > start and (size > _BYTES_AT_ONCE or end - start == wire.MOST_REPORTS):
            yield reports[start:end]
            start, size = end, len(report.sealed)
    if start < len(reports):
        yield reports[start:]


def _entry(body: bytes, name: str, kind: type) -> Any:
    """One entry of a JSON reply; its sender need not be honest."""
    try:
        found = json.loads(body)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise _unusable()
    return found


def _unusable() -> ProtocolError:
    return ProtocolError("An aggregator's reply is not usable.", suggest="ask its operator")


def _path(collection: bytes) -> str:
    return f"/v1/collections/{collection.hex()}"


class Courier:
    """A thread per aggregator. `send` returns at once; `finish` when everything is acknowledged or refused.

    Before anything is sent, each aggregator is asked for its key: an address that answers with another key than the
    terms name gets nothing.
    """

    def __init__(
        self, collection: Collection, *, patience: float = 60.0, insecure: bool = False, told: Told = lambda _: None
    ) -> None:
        self._collection, places = collection, collection.aggregators
        options: dict[str, Any] = {"patience": patience, "insecure": insecure, "told": told}
        self._aggregators = [HttpAggregator(place.url, **options) for place in places]
        #: For each aggregator: how many reports were stored, or refused for which reason.
        self.outcomes: list[Counter[str]] = [Counter() for _ in places]
        self._queues: list[queue.Queue[Sequence[Report] | None]] = [queue.Queue(_WAITING) for _ in places]
        self._failures: list[EpsilonsError] = []
        self._threads = [threading.Thread(target=self._carry, args=each, daemon=True) for each in enumerate(places)]
        for thread in self._threads:
            thread.start()

    def send(self, reports: Sequence[Sequence[Report]]) -> None:
        for waiting, some in zip(self._queues, reports, strict=True):
            waiting.put(some)

    def finish(self) -> list[Counter[str]]:
        """Wait for everything that was sent; what became of it, per aggregator."""
        for waiting in self._queues:
            waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]
        return self.outcomes

    def _carry(self, number: int, place: Place) -> None:
        aggregator, failed = self._aggregators[number], False
        while (some := self._queues[number].get()) is not None:
            if failed:
                # What is still handed in is dropped, so that no sender waits for a queue that is full.
                continue
            try:
                if not self.outcomes[number] and aggregator.key() != place.key:
                    what = f"The aggregator at {place.url} has another key than the terms say."
                    raise ProtocolError(what, rule="Shares go only to aggregators that the terms name.")
                self.outcomes[number].update(aggregator.take(self._collection.id, some))
            except EpsilonsError as failure:
                self._failures.append(failure)
                failed = True
        aggregator.shut()
