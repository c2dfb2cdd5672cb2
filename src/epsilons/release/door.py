"""The one door: reserve, durably; say that data is about to be read; read and draw; store; release what was stored.

Every answer about a table passes here, and nothing else reads a table for an answer. Whatever breaks in between, the
charge stands and no unaccounted bytes have left. A question that was asked before gets the stored bytes, at no charge;
one that was cut off midway is taken up where it stopped, by the plan it was charged for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Reservation, mark_text
from epsilons.release.answer import Release
from epsilons.release.sketch import Sketch


@dataclass(frozen=True)
class Request:
    """A question at the door: its digest, the roster's epoch, and a line for the journal."""

    key: bytes
    epoch: int
    kind: str
    asked: str
    individual: bool = False
    analyst: str | None = None


def pass_through(
    ledger: Ledger,
    request: Request,
    plan: Callable[[], Sketch],
    resume: Callable[[str], Sketch],
    read: Callable[[Sketch], Release],
) -> Release:
    """One answer. `plan` and `resume` work from public facts, `read` alone sees data.

    StalePlanError: somebody else was charged meanwhile, or the roster changed; nothing was charged, plan again.
    """
    held = ledger.find(request.key) or _reserve(ledger, request, plan())
    if held.answer is not None:
        return _parsed(held.answer)
    # Also what was just planned is taken from the ledger: a resumed question walks the same path as a fresh one.
    sketch = resume(held.description)
    ledger.mark_read(held.number)
    release = _marked(sketch.granted(read(sketch)), _mark(ledger, held, request.individual))
    content = json.dumps(release.to_dict(), separators=(",", ":"), allow_nan=False).encode()
    return _parsed(ledger.store(held.number, content))


def _reserve(ledger: Ledger, request: Request, sketch: Sketch) -> Reservation:
    return ledger.reserve(
        request.key,
        sketch.spendable.paid(sketch.charges),
        epoch=request.epoch,
        kind=request.kind,
        description=sketch.to_text(request.asked),
        individual=request.individual,
        analyst=request.analyst,
    )


def _mark(ledger: Ledger, held: Reservation, individual: bool) -> int | None:
    """Since which release all releases together are not DP."""
    before = ledger.not_dp_since()
    return held.number if individual and before is None else before


def _marked(release: Release, since: int | None) -> Release:
    if since is None:
        return release
    caveats = (mark_text(since), *release.guarantee.caveats)
    return replace(release, guarantee=replace(release.guarantee, caveats=caveats))


def _parsed(content: bytes) -> Release:
    return Release.from_dict(json.loads(content))
