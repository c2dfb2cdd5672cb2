"""Made-up requests to every route of a witness, by its ledgers, by others and by nobody: none fails, none goes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from epsilons.ledger.heads import Heads, Line
from epsilons.ledger.signed import SigningKey, read_signed
from epsilons.service.witness import WitnessApp, begin
from support.witnesses import call

LEDGERS = {f"{n}" * 32: SigningKey(bytes([n]) * 32) for n in range(1, 4)}
STRANGER = SigningKey(b"s" * 32)
ODD: list[Any] = [None, True, -1, 0, 1, 1 << 62, 1 << 63, 1.5, "1", "0" * 64, [], {}, [1, "0" * 64], "\ud800", "é" * 9]


def find_head(heads: Heads, ledger: str) -> Line | None:
    head, _ = heads.read(ledger)
    return None if head is None else head.line


def ask(app: WitnessApp, heads: Heads, luck: Random) -> int:
    """One request, often right but for one thing; what a head may become is checked whatever was asked."""
    ledger, mine = luck.choice(list(LEDGERS.items()))
    before = {one: find_head(heads, one) for one in LEDGERS}
    after = before[ledger]
    seq, most = (0, 0) if after is None else (after.seq, after.most)
    lines = [[seq + n, f"{luck.getrandbits(256):064x}", most + n] for n in range(1, luck.randrange(1, 4))]
    told: dict[str, Any] = {"ledger": ledger, "nonce": "1", "after": after, "lines": lines, "loss": False}
    told |= {"line": [seq, f"{luck.getrandbits(256):064x}"], "before": luck.randrange(9)}
    signs = luck.choice([mine] * 4 + [STRANGER])
    if luck.random() < 0.6:
        told[luck.choice(list(told))] = luck.choice(ODD)
    if luck.random() < 0.3 and lines:
        luck.choice(lines)[luck.randrange(3)] = luck.choice(ODD)
    try:
        content: Any = {**signs.sign(told), "key": signs.public}
    except UnicodeEncodeError:
        content = {"told": json.dumps(told), "signature": "0" * 128, "key": signs.public}
    if luck.random() < 0.2:
        content[luck.choice(list(content))] = luck.choice(ODD)
    body = json.dumps(content).encode()
    if luck.random() < 0.2:
        body = body[: luck.randrange(len(body))]
    if luck.random() < 0.1:
        body = luck.randbytes(luck.randrange(60))
    route = luck.choice(["heads"] * 4 + ["read", "list", "nothing"])
    path = luck.choice([f"/v1/ledgers/{ledger}/{route}"] * 9 + ["/v1/key", "/", "/v1/ledgers/../key"])
    status, found = call(app, luck.choice(["POST"] * 9 + ["GET", "PUT"]), path, body)
    assert status in (200, 400, 401, 404, 405, 413, 422), (status, found)
    if status != 200:
        assert found["status"] == status
    elif "told" in found:
        assert read_signed(found, app._key.public) is not None
    for one, head in before.items():
        now = find_head(heads, one)
        if now != head:  # only of the ledger that was asked about, signed by it, and forward
            assert one == ledger
            assert signs is mine
            assert now is not None
            assert head is None or (now.seq > head.seq and now.most >= head.most)
    return status


def put_to_the_test(folder: Path, luck: Random, number: int) -> set[int]:
    heads = Heads(f"sqlite:///{folder}/witness.store")
    app = WitnessApp(heads, begin(heads, folder / "witness.key"))
    for ledger, mine in LEDGERS.items():
        assert heads.add(ledger, None, [Line(1, "0" * 64, 0)], key=mine.public)
    seen = {ask(app, heads, luck) for _ in range(number)}
    assert all((find_head(heads, ledger) or Line(0, "", 0)).seq > 1 for ledger in LEDGERS)
    heads.close()
    return seen


def test_no_request_fails_and_no_head_goes_back(tmp_path: Path) -> None:
    assert {200, 400, 401, 404, 405, 422} <= put_to_the_test(tmp_path, Random(12), 400)


@pytest.mark.soak
@pytest.mark.figure("figure_12_witness")
def test_ten_thousand_requests(tmp_path: Path, record_property: Callable[[str, int], None]) -> None:
    put_to_the_test(tmp_path, Random(), 10_000)
    record_property("size", 10_000)
