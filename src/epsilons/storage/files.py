"""Files and folders of our own: for nobody else, and gone with the process that made them, however it ends.

A file has its mode from the moment it is made, so that there is no moment in which others could open it.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from epsilons.errors import EpsilonsError

_NEW, _HELD = "epsilons-new-", "epsilons-held-"
#: The folders that this process claimed: in which process, and the handle that holds the lock.
_held: dict[str, tuple[int, int]] = {}


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """An `opener` for `open`: a file that is made by it is its owner's alone."""
    return os.open(path, flags, 0o600)


def open_anew(path: str | os.PathLike[str], flags: int) -> int:
    """The same where a file may stand already, which others can read: not what is written to it from here on."""
    handle = open_private(path, flags)
    if os.name == "posix" and stat.S_ISREG(os.fstat(handle).st_mode):
        os.fchmod(handle, 0o600)
    return handle


def open_own(path: str | os.PathLike[str], flags: int) -> int:
    """The same for files of ours: OSError where a pipe or a device stands, which might never end."""
    handle = open_private(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a file")
    return handle


def read_own(path: str | os.PathLike[str], most: int = 1 << 26) -> bytes:
    """All that a file of ours holds; OSError if that is more than it can be."""
    with open(path, "rb", opener=open_own) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError("too large")
    return content


def write_private(path: str | os.PathLike[str], text: str) -> None:
    """A new file for its owner alone, durably; FileExistsError if there is one."""
    with open(path, "x", encoding="utf-8", opener=open_private) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def check_private(path: str | os.PathLike[str], refuse: Callable[..., EpsilonsError]) -> None:
    """Refuse a file that other users of this computer can read or change; where there is none, there is nothing."""
    if os.name != "posix":  # modes say nothing there
        return
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if mode & 0o077:
        what = f"Others on this computer can read or change {os.fspath(path)}."
        raise refuse(what, rule="Its owner alone may.", suggest=f"chmod 600 {os.fspath(path)}")


def replace_private(path: Path, text: str, before: Callable[[], None] | None = None) -> None:
    """New content for a file of its owner's alone, durably: the old one or the new one, whatever happens in between.

    `before` is called once the new one is safe beside the old one.
    """
    beside = path.with_name(path.name + ".new")
    with open(beside, "w", encoding="utf-8", opener=open_own) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if before is not None:
        before()
    beside.replace(path)
    _sync(str(path.parent))


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """One process at a time changes this file; its folder is made if it is missing."""
    # Only POSIX systems have it.
    import fcntl

    make_folder(path.parent)
    with open(path.with_name(path.name + ".lock"), "w", opener=open_own) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_folder(path: Path) -> None:
    """A folder and those above it, where they are missing, for their owner alone."""
    for folder in reversed([one for one in (path, *path.parents) if not one.exists()]):
        with suppress(FileExistsError):
            folder.mkdir(0o700)


def claim_folder(place: str | None = None) -> str:
    """A new folder of this process, among temporary ones or in a place; those of killed processes are removed first.

    A living process holds the lock of its folder. A folder gets the name that is swept only once it is locked.
    """
    new = tempfile.mkdtemp(prefix=_NEW, dir=place)
    if os.name != "posix":
        return new
    parent, name = os.path.split(new)
    for folder in (one.path for one in os.scandir(parent) if one.name.startswith(_HELD)):
        remove_unheld(folder, lambda: False)
    path = os.path.join(parent, _HELD + name.removeprefix(_NEW))
    _held[path] = os.getpid(), _lock(new)
    os.rename(new, path)
    return path


def remove_unheld(folder: str, needed: Callable[[], bool]) -> None:
    """Remove a folder, unless a living process holds it, it is another user's or none, or it is `needed` after all."""
    if os.name == "posix":
        with suppress(OSError):
            handle = _lock(folder)
            if os.fstat(handle).st_uid == os.geteuid() and not needed():
                shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def keep_folder(claimed: str, path: str) -> None:
    """Give a folder that was claimed its own name, durably: it stays. It is held until this process ends."""
    for folder, _, names in os.walk(claimed):
        for each in (folder, *(os.path.join(folder, name) for name in names)):
            _sync(each)
    os.rename(claimed, path)
    _held[path] = _held.pop(claimed, (os.getpid(), -1))
    _sync(os.path.dirname(path))


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(folder: str) -> int:
    """A handle that holds the folder's lock; OSError if somebody else does, or it is a link."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def release_folder(path: str) -> None:
    """Remove a folder that was claimed; a child that was forked leaves its parent's alone."""
    process, handle = _held.pop(path, (os.getpid(), -1))
    if process == os.getpid():
        shutil.rmtree(path, ignore_errors=True)
    if handle >= 0:
        os.close(handle)
