"""Files of published data sets: fetched once from their origin, checked, whole or not there."""

from __future__ import annotations

import hashlib
import io
import os
import ssl
import sys
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from slencodings.progress import Progress

_TRIES, _SECONDS, _BLOCK = 4, 30, 1 << 16
_NETWORK = (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError)


class Origin(NamedTuple):
    """Where bytes come from.

    Attributes
    ----------
    url : names a commit, so that it always means the same bytes
    path : what they are called in a folder that holds them as they come
    size : how many bytes, roughly; said before they are fetched
    sha256 : of the bytes as they come. Where that is not known they stay in memory, and only
        what is made of them is written: so nothing unchecked, or private, reaches the disk
    """

    url: str
    path: str
    size: int
    sha256: str = ""


class File(NamedTuple):
    """What a loader reads.

    Attributes
    ----------
    path : in the folder of the data set
    size, sha256 : of its content
    sources : what it comes from
    make : their bytes to the bytes of the file
    content : the bytes of the file to those that are read and checked; the same for every way to
        write the same table
    """

    path: str
    size: int
    sha256: str
    sources: tuple[Origin, ...]
    make: Callable[..., bytes] = bytes
    content: Callable[[bytes], bytes] = bytes


def github(repository: str, commit: str, path: str, size: int, sha256: str = "") -> Origin:
    """A file in a public repository as it was at a commit.

    Examples
    --------
    >>> github("someone/data", "f98448e", "rte.tsv", 100).url
    'https://raw.githubusercontent.com/someone/data/f98448e/rte.tsv'
    """
    url = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    return Origin(url, path, size, sha256)


def unchanged(path: str, source: Origin) -> File:
    """A file that is kept as it comes."""
    return File(path, source.size, source.sha256, (source,))


def pinned(
    origin: tuple[str, str], path: str, size: int, sha256: str, *, name: str | None = None
) -> File:
    """A file of a repository at a commit that is kept as it comes, under its path or a `name`."""
    return unchanged(name or path, github(*origin, path, size, sha256))


def cache() -> Path:
    """Where fetched files are kept: SLENCODINGS_CACHE, or the usual place of the platform."""
    if os.environ.get("SLENCODINGS_CACHE"):
        return Path(os.environ["SLENCODINGS_CACHE"])
    home = Path.home()
    usual = {
        "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
        "darwin": home / "Library" / "Caches",
    }
    linux = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return usual.get(sys.platform, linux) / "slencodings"


def there(home: Path, file: File) -> bool:
    """Whether a folder holds the file, or all that it is made of."""
    return (home / file.path).exists() or all((home / s.path).exists() for s in file.sources)


def read(home: Path, file: File) -> bytes:
    """The checked content of a file in a folder, or of what it is made of.

    Examples
    --------
    >>> read(Path("/nowhere"), unchanged("a.txt", Origin("https://x.org/a.txt", "a.txt", 3, "0")))
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a.txt'
    """
    path = home / file.path
    if path.exists():
        return check(file, path.read_bytes(), path)
    parts = [home / source.path for source in file.sources]
    return check(file, _made(file, [part.read_bytes() for part in parts], parts[0]), parts[0])


def check(file: File, data: bytes, path: Path | str) -> bytes:
    """The content of the bytes of a file, or an error if it is not what was published."""
    try:
        content = file.content(data)
    except Exception as error:  # what is cut or altered breaks its reader in many ways
        raise _damaged(file, path, f"{len(data):,} bytes that cannot be read ({error})") from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise _damaged(file, path, f"{len(content):,} bytes with sha256 {found}")
    return content


def _made(file: File, came: list[bytes], path: Path | str) -> bytes:
    try:
        return file.make(*came)
    except Exception as error:
        size = sum(map(len, came))
        raise _damaged(file, path, f"{size:,} bytes that cannot be read ({error})") from error


def _damaged(file: File, path: Path | str, found: str) -> ValueError:
    """What to say of a file, or of an address that gave something else."""
    plain = file.make is bytes and file.content is bytes
    urls = _urls(file)
    hint = (
        f"It comes from {urls}: delete it and pass download=True, or fetch it by hand."
        if path != urls
        else "Nothing of it was kept. Try again; if that does not help, its origin has changed."
    )
    return ValueError(
        f"{path} is cut or altered: {'' if plain else 'its content '}needed {file.size:,} bytes "
        f"with sha256 {file.sha256}, found {found}. {hint}"
    )


def _urls(file: File) -> str:
    return " and ".join(source.url for source in file.sources)


def offer(files: Iterable[File], home: Path) -> str:
    """What a download would fetch, in words.

    Examples
    --------
    >>> offer([unchanged("a", github("someone/data", "f98448e", "a", 2_500_000))], Path("/cache"))
    'download=True to fetch 1 file (about 2.5 MB) from github.com/someone/data into /cache'
    """
    sources = {source for file in files for source in file.sources}
    size = sum(source.size for source in sources)
    origins = " and ".join(sorted({_origin(source) for source in sources}))
    count = f"{len(sources)} file{'s' if len(sources) > 1 else ''}"
    return f"download=True to fetch {count} (about {size / 1e6:.1f} MB) from {origins} into {home}"


def _origin(source: Origin) -> str:
    where = urlsplit(source.url)
    if where.netloc != "raw.githubusercontent.com":
        return where.netloc
    return "github.com/" + "/".join(where.path.split("/")[1:3])


def fetch(files: Iterable[File], home: Path) -> None:
    """Fetch the files that a folder lacks, each checked before it has its name.

    On a terminal there is a bar. What came before a connection broke is kept as *.part, and the
    next call goes on from there.
    """
    from slencodings.files.write import replacing
    from slencodings.progress import notes

    came: dict[Origin, bytes] = {}
    with notes(quiet=not sys.stderr.isatty()) as (say, progress):
        missing = [file for file in files if not there(home, file)]
        if missing:
            say("fetch", offer(missing, home).removeprefix("download=True to fetch "))
        for file in missing:
            path = home / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            for source in file.sources:
                if source not in came:
                    came[source] = _bytes(source, path.parent, home, progress)
            data = _made(file, [came[source] for source in file.sources], _urls(file))
            check(file, data, _urls(file))
            with replacing(path) as new:
                new.write_bytes(data)
            for source in file.sources:
                _part(source, path.parent).unlink(missing_ok=True)


def _part(source: Origin, folder: Path) -> Path:
    return folder / f"{Path(source.path).name}.part"


def _bytes(source: Origin, folder: Path, home: Path, progress: Progress) -> bytes:
    """The bytes of a source, by way of a file that can be gone on with if they can be checked."""
    if not source.sha256:
        memory = io.BytesIO()
        _persist(source, memory, home, progress)
        return memory.getvalue()
    part = _part(source, folder)
    if not (part.exists() and hashlib.sha256(part.read_bytes()).hexdigest() == source.sha256):
        try:
            with part.open("ab") as file:
                _persist(source, file, home, progress)
        except ConnectionError:
            if not part.stat().st_size:
                part.unlink()
            raise
    data = part.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != source.sha256:
        part.unlink()
        raise ValueError(
            f"{source.url} is not the file that was published: needed sha256 {source.sha256}, "
            f"found {found} in {len(data):,} bytes. Nothing of it was kept. Try again; if that "
            f"does not help, fetch the file by hand and save it as {home / source.path}."
        )
    return data


def _persist(source: Origin, out: BinaryIO, home: Path, progress: Progress) -> None:
    """Pull, and go on where a connection broke."""
    reason: Any = "no answer"
    for _ in range(_TRIES):
        try:
            return _pull(source, out, progress)
        except HTTPError as error:
            error.close()
            reason = f"{error.code} {error.reason}"
            if error.code != 416:
                break
            # There is nothing from here on: what is kept belongs to another file.
            out.truncate(0)
            out.seek(0)
        except _NETWORK as error:
            reason = getattr(error, "reason", None) or error
    kept = f"The first {out.tell():,} bytes are kept for the next try. " if source.sha256 else ""
    raise ConnectionError(
        f"{source.url} could not be fetched: {reason}. {kept if out.tell() else ''}"
        f"Try again when you are online, or fetch it by hand and save it as {home / source.path}."
    )


def _pull(source: Origin, out: BinaryIO, progress: Progress) -> None:
    have = out.seek(0, io.SEEK_END)
    ask = Request(source.url, headers={"Range": f"bytes={have}-"} if have else {})
    with urlopen(ask, timeout=_SECONDS) as answer:
        goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if have and not (answer.status == 206 and goes_on):
            out.truncate(0)
            have = out.seek(0)
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        while block := answer.read(_BLOCK):
            out.write(block)
            have += len(block)
            progress(Path(source.path).name, have / 1e6, total and total / 1e6, "MB")
    if total is not None and have < total:
        raise ConnectionError(f"the connection broke after {have:,} of {total:,} bytes")
