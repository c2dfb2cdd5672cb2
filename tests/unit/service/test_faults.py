"""What a server keeps may break while it runs: who asks is told that and no more, and so is whoever watches it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.dataset import Dataset
from epsilons.service import clock, holdings, store
from support.gateways import Gateway, Seen, declare, register_again

PLACE = "/v1/datasets/wages"
FIXED = {
    "type": "about:blank",
    "title": "This cannot be used just now, whatever is asked.",
    "status": 503,
    "detail": "What was charged stands; the same request again goes on from there.",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(clock, "LEAST", 0.0)
    monkeypatch.setattr(store, "OWNER", replace(store.OWNER, patience=0))
    made = Gateway(declare(tmp_path))
    yield made
    made.close()


@pytest.fixture
def held(here: Gateway) -> dict[str, str]:
    made = {role: here.keys.add(role, role) for role in ("steward", "analyst")}
    return {**made, "person": here.keys.add("a person", "person", "wages", "person 3")}


def ask(here: Gateway, key: str, age: int) -> Seen:
    question = {"statistic": "count", "arguments": {"where": f"age >= {age}", "share": 0.01}}
    return here("POST", f"{PLACE}/ask", question, key, f"age {age}".replace(" ", "-"))


def unusable(seen: Seen) -> bool:
    """Said in one shape, with nothing of what is wrong."""
    assert (seen.status, seen.headers["content-type"], seen.document) == (503, "application/problem+json", FIXED)
    return int(seen.headers["retry-after"]) > 0


def health(here: Gateway) -> int:
    return here("GET", "/health").status


def test_a_dataset_that_cannot_be_opened_anew(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(here, held["analyst"], 30).status == 200
    register_again(here.folder)
    file = here.folder / "wages.toml"
    declared = file.read_text()
    file.write_text("secret [")
    assert health(here) == 503, "before anybody asked"
    assert unusable(ask(here, held["analyst"], 31))
    assert unusable(here("GET", PLACE, key=held["analyst"]))
    assert unusable(here("GET", f"{PLACE}/account", key=held["person"]))
    told = here("GET", PLACE, key=held["steward"])
    assert (told.status, "is not TOML" in told.document["title"]) == (503, True), "whose file it is"
    # It is not opened again for every request.
    tried: list[int] = []
    holding = here.app.holdings["wages"]
    with monkeypatch.context() as changed:
        changed.setattr(holding, "_opener", lambda: tried.append(1))
        assert [health(here), ask(here, held["analyst"], 31).status] == [503, 503]
    assert tried == []
    file.write_text(declared)
    monkeypatch.setattr(holdings, "PAUSE", 0.0)
    register_again(here.folder)  # another registration is tried at once
    assert ask(here, held["analyst"], 31).status == 200
    assert health(here) == 200


def test_lanes_that_were_opened_are_closed_where_one_of_them_cannot_be(
    here: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_again(here.folder)
    holding, opened = here.app.holdings["wages"], list[Dataset]()
    opener = holding._opener

    def open_two() -> Dataset:
        if len(opened) == 2:
            raise eps.DataError("The snapshot of this dataset is gone.")
        opened.append(opener())
        return opened[-1]

    monkeypatch.setattr(holding, "_opener", open_two)
    before = list(holding._lanes)
    with pytest.raises(holdings.UnservedError, match="is gone"):
        holding.refresh()
    assert [one._closed for one in opened] == [True, True]
    assert [one._closed for one in before] == [False] * holdings.LANES
    assert holding._lanes == before


def test_a_ledger_whose_head_cannot_be_read(here: Gateway, held: dict[str, str]) -> None:
    anchor: Any = here.app.holdings["wages"].people.ledger._anchor
    head = anchor._path.read_text()
    anchor._path.write_text("{")
    assert health(here) == 503
    assert unusable(ask(here, held["analyst"], 32))
    told = ask(here, held["steward"], 33)
    assert (told.status, str(anchor._path) in told.document["title"]) == (503, True)
    anchor._path.write_text(head)
    assert (health(here), ask(here, held["analyst"], 32).status) == (200, 200)


def test_a_table_that_cannot_be_read(here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """After the charge, which stands; the same request goes on from it."""
    engines: list[Any] = [here.app.holdings["wages"].lane(number)._engine for number in range(holdings.LANES)]
    before = here.app.holdings["wages"].people.ledger.count("reservations")
    with monkeypatch.context() as changed:
        for one in engines:
            changed.setattr(one, "_connection", None)
        assert unusable(ask(here, held["analyst"], 34))
    assert ask(here, held["analyst"], 34).status == 200
    assert here.app.holdings["wages"].people.ledger.count("reservations") == before + 1


def test_a_store_that_is_locked_or_damaged(here: Gateway, held: dict[str, str]) -> None:
    assert ask(here, held["analyst"], 35).status == 200
    other = sqlite3.connect(here.folder / "gateway.store", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert unusable(ask(here, held["analyst"], 36))
    assert ask(here, held["analyst"], 35).status == 200, "what is stored in the ledger needs no note"
    new = here("POST", "/v1/keys", {"name": "new", "role": "analyst"}, held["steward"])
    assert (new.status, new.document["kind"]) == (503, "UnusableStoreError")
    other.execute("ROLLBACK")
    assert ask(here, held["analyst"], 36).status == 200
    other.execute("ALTER TABLE keys RENAME TO lost")
    for way in (ask(here, held["analyst"], 37), here("GET", "/v1/me", key=held["person"])):
        assert unusable(way), "nobody is known"
    other.execute("ALTER TABLE lost RENAME TO keys")
    other.close()
    assert ask(here, held["analyst"], 37).status == 200


def test_a_store_that_is_gone_is_seen_by_whoever_watches(here: Gateway, tmp_path: Path) -> None:
    here.store.close()  # no idle connection keeps the old file
    for file in here.folder.glob("gateway.store*"):
        shutil.move(file, f"{file}.moved")
    (here.folder / "gateway.store").mkdir()
    assert health(here) == 503
    (here.folder / "gateway.store").rmdir()
    for file in here.folder.glob("gateway.store*.moved"):
        shutil.move(file, str(file).removesuffix(".moved"))
    assert health(here) == 200
