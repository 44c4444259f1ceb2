"""Scratch: gone at the end, or with the next run where its owner was killed.

It is locked as long as it is in use. The lock of a process ends with it, however it ends, so
scratch that can be locked is nobody's any more. Where there are no locks, none is taken for dead.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def scratch_file(target: Path) -> Generator[Path]:
    """A new file beside a target, to fill and to rename."""

    def make(prefix: str, suffix: str, folder: Path) -> str:
        handle, name = tempfile.mkstemp(suffix, prefix, folder)
        os.close(handle)
        return name

    # That of other targets is left alone: machines that share a disk may not share its locks.
    with _owned(f".{target.name}.slencodings-", target.suffix, target.parent, make) as path:
        yield path


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A new folder in the one for what is temporary, which TMPDIR names."""

    def make(prefix: str, suffix: str, folder: Path) -> str:
        return tempfile.mkdtemp(suffix, prefix, folder)

    machine = re.sub(r"\W", "-", platform.node())
    with _owned(f"slencodings-{machine}-", "", Path(tempfile.gettempdir()), make) as path:
        yield path


@contextmanager
def _owned(
    prefix: str, suffix: str, folder: Path, make: Callable[[str, str, Path], str]
) -> Generator[Path]:
    alike = re.compile(re.escape(prefix) + "[a-z0-9_]{8}" + re.escape(suffix))
    with suppress(OSError):  # A folder may be for writing only.
        for path in [path for path in folder.iterdir() if alike.fullmatch(path.name)]:
            _remove_if_dead(path)
    path = Path(make(prefix, suffix, folder))
    while (lock := _lock(path, wait=True)) is None and not path.exists():
        # Another run took it for dead before it was locked.
        path = Path(make(prefix, suffix, folder))
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def _remove_if_dead(path: Path) -> None:
    if (lock := _lock(path, wait=False)) is not None:
        _remove(path)
        os.close(lock)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a file or folder until what is returned is closed; None if that cannot be had."""
    if fcntl is None:
        return None
    with suppress(OSError):
        # Disks on a network lock files for those who may write, and folders for nobody.
        handle = os.open(path, os.O_NOFOLLOW | (os.O_RDONLY if path.is_dir() else os.O_RDWR))
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Its owner may have renamed or removed it since it was opened.
            if os.path.samestat(os.fstat(handle), os.lstat(path)):
                return handle
        os.close(handle)
    return None


def _remove(path: Path) -> None:
    """What cannot be removed now is left to the next run."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
