"""The snapshot of a registered dataset: the one copy of its rows that questions are asked of.

Registration writes it and the ledger keeps its stamp. Nothing else is ever asked about: what becomes of the source
afterwards changes no answer, and a snapshot that is not the registered one is refused.

A snapshot is a folder for its owner alone, with everybody's capped rows, their person's number and cohort, as the
engine writes them; people's digests, and the places of their cohorts, in the order of their numbers; and a nonce. It is
asked as it stands: opening it reads none of that. It is made complete under another name and renamed; of a registration
that was killed, the next one sweeps what is left.

All hashes of a stamp are keyed by the nonce, which never leaves the folder. With plain ones, whoever reads the ledger
and knows all rows but one could find that one out by trying.
"""

from __future__ import annotations

import hmac
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from epsilons.dataset.rows import COHORT, PERSON, Held, Labelled, as_codes, cap_rows, check_copy
from epsilons.engines.base import OTHER, SOURCE, Column, Engine, Schema, engines
from epsilons.errors import DataError
from epsilons.ledger.values import DIGEST_BYTES, Registration
from epsilons.noise.entropy import system
from epsilons.storage.base import reach
from epsilons.storage.files import (
    claim_folder,
    keep_folder,
    make_folder,
    open_own,
    open_private,
    read_own,
    release_folder,
    remove_unheld,
)

if TYPE_CHECKING:
    import pyarrow as pa

_DIGESTS, _COHORTS, _NONCE = "digests", "cohorts", "nonce"
_NONCE_BYTES = 32
#: So many bytes at either end of a file are compared at every opening.
_END = 1 << 16
_PIECE = 1 << 20
_AGAIN = "`epsilons register` again: questions are then asked of the rows that it reads"


class FileStamp(TypedDict):
    """One file: `ends` is the hash of its first and last bytes, `whole` that of all."""

    name: str
    size: int
    inode: int
    mtime_ns: int
    ends: str
    whole: str


class Stamp(TypedDict):
    """What the ledger keeps of a snapshot, as plain values; `left_out` are columns that cannot be asked about.

    `cohorts` are those of its people, in the order of their codes.
    """

    engine: str
    folder: str
    left_out: list[list[str]]
    cohorts: list[int]
    files: list[FileStamp]


def write_snapshot(
    engine: Engine, person: Column, ids: pa.Array, held: Held, digests: NDArray[np.uint8],
    cohorts: NDArray[np.integer], rows: int, salt: bytes, folder: str,
) -> Stamp:  # fmt: skip
    """Cap what was staged and write it to a new folder; `ids[i]`, as the source writes it, has the digest `digests[i]`.

    They are sorted by it and have the rows `held`; `cohorts[i]` is where that person stands once they are registered.
    The folder is held until this process ends, so that `sweep_snapshots` of another one leaves it alone.
    """
    if os.path.lexists(folder):
        raise DataError("There is something at the snapshot's place.", suggest="a folder that does not exist yet")
    claimed, (codes, listed) = None, as_codes(cohorts)
    try:
        make_folder(Path(folder).parent)
        claimed = claim_folder(os.path.dirname(folder))
        with cap_rows(engine, person, ids, held, rows, salt, {COHORT: codes}) as capped:
            engine.write(capped, claimed)
        reach("snapshot written")
        _check_written(engine, claimed, person, ids, rows)
        _write(os.path.join(claimed, _DIGESTS), digests.data)
        _write(os.path.join(claimed, _COHORTS), codes.data)
        nonce = system().bytes(_NONCE_BYTES)
        _write(os.path.join(claimed, _NONCE), nonce)
        files = [_stamp(claimed, name, nonce) for name in _list_files(claimed)]
        reach("snapshot complete")
        keep_folder(claimed, folder)
        reach("snapshot kept")
    except BaseException as failed:
        if claimed is not None:
            release_folder(claimed)
        if not isinstance(failed, OSError):
            raise
    else:
        left_out = [[kind.name, kind.type] for kind in engine.schema.values() if kind.family == OTHER]
        return Stamp(engine=engine.name, folder=folder, left_out=left_out, cohorts=list(listed), files=files)
    hint = "a folder that you may write to, on a disk with room"
    raise DataError("The snapshot could not be written.", rule="It lies in a folder of yours alone.", suggest=hint)


def check_place(place: str) -> None:
    """Refuse the folder of a ledger's snapshots, or that around it, if others may open it: it could not be asked."""
    _refuse_open([place, os.path.dirname(place)], "the snapshots of this ledger")


def open_snapshot(stamp: Stamp, rows: int, line: int, **options: Any) -> Labelled:
    """The rows, read only, if this is what was registered, by that line of the journal; at most `rows` a person.

    Several processes may do so at once. `options` are those of the engine: threads, memory.
    """
    _compare(stamp, thorough=False)
    known, folder = engines(), stamp["folder"]
    if stamp["engine"] not in known or "cohorts" not in stamp:
        what, rule = "The snapshot of this dataset is of an older release.", "It does not say who stands where."
        raise DataError(what, rule=rule, suggest=_AGAIN)
    engine = known[stamp["engine"]].reopen(folder, **options)
    schema = engine.schema
    shown = [kind for kind in schema.values() if kind.name not in (PERSON, COHORT)]
    engine.schema = Schema([*shown, *(Column(name, OTHER, type=kind) for name, kind in stamp["left_out"])])
    cohorts = tuple(stamp["cohorts"])
    codes = np.memmap(os.path.join(folder, _COHORTS), np.min_scalar_type(len(cohorts)), "r")
    digests = np.memmap(os.path.join(folder, _DIGESTS), np.uint8, "r").reshape(-1, DIGEST_BYTES)
    return Labelled(engine, SOURCE, schema, digests, codes, cohorts, line, len(digests) * rows)


def verify_snapshot(stamp: Stamp, of: str = "this dataset") -> None:
    """Hash every byte; `DataError` if it is not what was registered."""
    _compare(stamp, thorough=True, of=of)


def verify_snapshots(registrations: Iterable[Registration]) -> dict[str, bool]:
    """Every byte of the newest snapshot of every dataset: {name: whether it could be reached from here}.

    `DataError` names the dataset of the first one that is not what was registered.
    """
    newest: dict[str, Any] = {one.name: one.stamp for one in registrations if one.stamp}  # none in memory
    reached = {name: os.path.isdir(stamp["folder"]) for name, stamp in newest.items()}
    for name in (name for name, there in reached.items() if there):
        verify_snapshot(newest[name], repr(name))
    return reached


def remove_snapshot(stamp: Mapping[str, Any], place: str) -> None:
    """Of a registration that did not come about, or that another has replaced; who has it open is refused anyway.

    Only what is a snapshot in the ledger's own place: the path is the ledger's word, which somebody may have sent.
    """
    if not stamp:
        return
    folder = os.path.realpath(stamp["folder"])
    if os.path.dirname(folder) == os.path.realpath(place) and os.path.isfile(os.path.join(folder, _NONCE)):
        release_folder(folder)


def sweep_snapshots(place: str, known: Callable[[], Collection[str]]) -> None:
    """Remove what is in a ledger's place and neither held by a living process nor known, by the folder's name, then.

    What is known is asked for once a folder is locked: its process may have registered it just before it ended.
    """
    for each in list(os.scandir(place)) if os.path.isdir(place) else ():
        if os.path.isfile(os.path.join(each.path, _NONCE)):
            remove_unheld(each.path, partial(_is_known, each.name, known))


def _is_known(name: str, known: Callable[[], Collection[str]]) -> bool:
    return name in known()


def _check_written(engine: Engine, folder: str, person: Column, ids: pa.Array, rows: int) -> None:
    written = type(engine).reopen(folder)
    try:
        check_copy(written, SOURCE, person, ids, rows)
    finally:
        written.close()


def _write(path: str, content: memoryview | bytes) -> None:
    with open(path, "xb", opener=open_private) as file:
        file.write(content)


def _list_files(folder: str) -> list[str]:
    """Everything in a folder but the nonce, by names relative to it."""
    found = (os.path.relpath(os.path.join(home, name), folder) for home, _, names in os.walk(folder) for name in names)
    return sorted(name for name in found if name != _NONCE)


def _stamp(folder: str, name: str, nonce: bytes) -> FileStamp:
    path = os.path.join(folder, name)
    os.chmod(path, 0o600)
    facts = os.stat(path)
    return FileStamp(
        name=name,
        size=facts.st_size,
        inode=facts.st_ino,
        mtime_ns=facts.st_mtime_ns,
        ends=_hash_ends(path, name, nonce),
        whole=_hash_whole(path, name, nonce),
    )


def _hash_ends(path: str, name: str, nonce: bytes) -> str:
    hashed = hmac.new(nonce, f"ends of {name}\0".encode(), "sha256")
    with open(path, "rb", opener=open_own) as file:
        hashed.update(file.read(_END))
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        hashed.update(file.read(_END))
    return hashed.hexdigest()


def _hash_whole(path: str, name: str, nonce: bytes) -> str:
    hashed = hmac.new(nonce, f"all of {name}\0".encode(), "sha256")
    with open(path, "rb", opener=open_own) as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.hexdigest()


def _compare(stamp: Stamp, thorough: bool, of: str = "this dataset") -> None:
    """Sizes, times and ends of all files; where one was copied or restored, or if it shall be thorough, all bytes."""
    folder = stamp["folder"]
    if not os.path.isdir(folder):
        rule = "Questions are asked of the copy that registration made."
        raise DataError(f"The snapshot of {of} is gone.", rule=rule, suggest=_AGAIN)
    # The folder that has all snapshots of a ledger, and that around it, are made for their owner alone as well.
    place = os.path.dirname(folder)
    _refuse_open([folder, place, os.path.dirname(place)], f"the snapshot of {of}")
    try:
        alike = _list_files(folder) == [file["name"] for file in stamp["files"]]
        nonce = read_own(os.path.join(folder, _NONCE), _NONCE_BYTES)
        alike = alike and all(_is_like(folder, file, nonce, thorough) for file in stamp["files"])
    except OSError:
        alike = False
    if not alike:
        raise _unlike(of)


def _refuse_open(folders: list[str], what: str) -> None:
    opened = [one for one in folders if os.path.isdir(one) and os.stat(one).st_mode & 0o077]
    if os.name == "posix" and opened:
        rule = "Everybody's rows are kept in folders for their owner alone."
        raise DataError(f"Others may open {what}.", rule=rule, suggest=shlex.join(["chmod", "700", *opened]))


def _is_like(folder: str, file: FileStamp, nonce: bytes, thorough: bool) -> bool:
    path = os.path.join(folder, file["name"])
    facts = os.stat(path)
    if facts.st_size != file["size"] or _hash_ends(path, file["name"], nonce) != file["ends"]:
        return False
    same = (facts.st_ino, facts.st_mtime_ns) == (file["inode"], file["mtime_ns"])
    return (same and not thorough) or _hash_whole(path, file["name"], nonce) == file["whole"]


def _unlike(of: str = "this dataset") -> DataError:
    rule = "A snapshot stays as it was registered; this one was changed, replaced, or lacks a part."
    return DataError(f"The snapshot of {of} is not the registered one.", rule=rule, suggest=_AGAIN)
