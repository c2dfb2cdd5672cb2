"""Keys: many random bits, shown once, known by their hash, ended for good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from epsilons.errors import ProtocolError
from epsilons.remote.keys import is_key, make_key
from epsilons.service.keys import Keys
from epsilons.service.store import open_store


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Keys]:
    store = open_store(f"sqlite:///{tmp_path}/gateway.store")
    yield Keys(store)
    store.close()


def test_a_mistyped_key_is_known_without_the_store() -> None:
    key = make_key()
    assert is_key(key)
    assert len({make_key() for _ in range(100)}) == 100
    assert len(key) - len("eps_") - 6 == 32, "32 letters of 5 bits each"
    for place in range(len(key)):
        other = key[:place] + ("a" if key[place] != "a" else "b") + key[place + 1 :]
        assert not is_key(other)
    for wrong in ("", "eps_", key[:-1], key + "a", key.upper(), f" {key}", key + "\n"):
        assert not is_key(wrong)


def test_only_a_hash_is_kept(keys: Keys, tmp_path: Path) -> None:
    key = keys.add("office", "analyst")
    found = keys.find(key)
    assert found is not None
    assert (found.name, found.role) == ("office", "analyst")
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"office" in kept
    assert key.encode() not in kept
    assert key.removeprefix("eps_")[:32].encode() not in kept
    assert all((file.stat().st_mode & 0o077) == 0 for file in tmp_path.iterdir())


def test_a_revoked_key_opens_nothing_and_stays_listed(keys: Keys) -> None:
    first, second = keys.add("office", "analyst"), keys.add("office", "analyst")
    keys.revoke(1)
    keys.revoke(1)
    assert keys.find(first) is None
    assert keys.find(second) is not None
    assert keys.find(make_key()) is None
    assert [one.revoked is None for one in keys.list()] == [False, True]
    with pytest.raises(ProtocolError, match="no key of this number"):
        keys.revoke(3)


def test_a_name_has_one_role_and_a_person_one_account(keys: Keys) -> None:
    keys.add("office", "analyst")
    for name, role, dataset, person in (
        ("office", "steward", None, None), ("x", "king", None, None), ("", "analyst", None, None),
        ("ann", "person", None, None), ("ann", "person", "wages", None), ("other", "analyst", "wages", 1),
    ):  # fmt: skip
        with pytest.raises(Exception, match=r"name|role|dataset"):
            keys.add(name, role, dataset, person)
    keys.add("ann", "person", "wages", 17)
    with pytest.raises(ProtocolError, match="a key already"):
        keys.add("ann", "person", "wages", 18)
    assert [one.person for one in keys.list()] == [None, 17]
