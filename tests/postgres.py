"""A PostgreSQL server of the tests' own, in an empty folder, reached through a socket there."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

# It will not run as root, and Debian's package brings a user for it.
USER = "postgres"


def programs() -> Path | None:
    """The folder of the server's programs; where there are none, Debian's package is tried."""
    if (found := _there()) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        subprocess.run(["apt-get", "install", "-y", "postgresql"], timeout=300, **how)  # pyright: ignore[reportCallIssue, reportArgumentType]
        found = _there()
    return found


def _there() -> Path | None:
    known = shutil.which("initdb")
    folders = [Path(known).parent] if known else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _run(words: Sequence[object]) -> None:
    """Run a program of the server, as a user that it accepts."""
    who = {"user": USER, "group": pwd.getpwnam(USER).pw_gid} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [str(word) for word in words], cwd="/", capture_output=True, text=True, check=False, **who
    )
    assert done.returncode == 0, done.stderr + done.stdout


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that runs until the end."""
    bin = programs()
    if bin is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # Not in a folder of pytest's, which are for one user alone.
    with TemporaryDirectory(prefix="slencodings-postgres-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        data, log = Path(folder, "data"), Path(folder, "log")
        _run([bin / "initdb", "-D", data, "-U", USER, "--auth=trust", "-E", "UTF8", "--no-sync"])
        # Queries of few rows are over before a compiler for them would be done.
        options = f"-c listen_addresses='' -k {folder} -c fsync=off -c jit=off"
        _run([bin / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"])
        try:
            yield f"postgresql://{USER}@/postgres?host={folder}"
        finally:
            _run([bin / "pg_ctl", "-D", data, "-m", "immediate", "stop"])
