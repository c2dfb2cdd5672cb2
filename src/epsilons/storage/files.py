"""Files and folders of our own: for nobody else, and gone with the process that made them, however it ends.

A file has its mode from the moment it is made, so that there is no moment in which others could open it; the umask can
only take more away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_NEW, _HELD = "epsilons-new-", "epsilons-held-"
#: The folders that this process holds: who made them, and the handle that holds the lock.
_held: dict[str, tuple[int, int]] = {}


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """An `opener` for `open`: a file that is made by it is its owner's alone."""
    return os.open(path, flags, 0o600)


def make_folder(path: Path) -> None:
    """A folder and those above it, where they are missing, for their owner alone."""
    for folder in reversed([one for one in (path, *path.parents) if not one.exists()]):
        with suppress(FileExistsError):
            folder.mkdir(0o700)


def claim_folder() -> str:
    """A temporary folder of this process; those of processes that were killed are removed first.

    A folder belongs to a living process as long as it is locked. It gets the name that is swept only once it is locked,
    so that nobody sweeps it in between.
    """
    new = tempfile.mkdtemp(prefix=_NEW)
    if os.name != "posix":
        return new
    import fcntl

    for entry in os.scandir(os.path.dirname(new)):
        if entry.name.startswith(_HELD):
            with suppress(OSError):  # it is locked, or another user's, or swept by another process
                handle = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.fstat(handle).st_uid == os.geteuid():
                        shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(handle)
    handle = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    path = os.path.join(os.path.dirname(new), _HELD + os.path.basename(new).removeprefix(_NEW))
    os.rename(new, path)
    _held[path] = os.getpid(), handle
    return path


def release_folder(path: str) -> None:
    """Remove a folder that this process claimed; a child that was forked leaves it alone."""
    process, handle = _held.pop(path, (0, -1))
    if process in (0, os.getpid()):
        shutil.rmtree(path, ignore_errors=True)
    if handle >= 0:
        os.close(handle)
