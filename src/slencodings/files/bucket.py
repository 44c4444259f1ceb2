"""Objects of a store such as s3://, through fsspec: which there are, and one written whole.

An object is there once its upload is complete, and not before: a run that is killed leaves none
under the name, and what was there stays. Parts that it had sent are taken back by the next run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
# Parts of an upload; more than one, so that a part that fails is sent again and not all of it.
PART = 16 * 2**20


def file_system(address: str) -> Any:
    """What fsspec reaches the address with."""
    scheme = address.split("://", 1)[0].lower()
    try:
        fsspec: Any = import_module("fsspec")
        return fsspec.filesystem(scheme)
    except (ImportError, ValueError) as error:
        what = "pip install 'slencodings[s3]'" if scheme == "s3" else "fsspec's package for it"
        raise ImportError(
            f"nothing here can reach {scheme}://: {error}. Install what can: {what}"
        ) from error


def check_object(target: str, source: Sequence[str]) -> None:
    """Refuse a place where no object can be, before any work is done."""
    if target in source:
        raise ValueError(f"the output must not replace its own input {target!r}. Name another.")
    system, bucket = file_system(target), target.split("://", 1)[1].split("/", 1)[0]
    with plain_errors(target):
        if not system.exists(bucket):
            raise FileNotFoundError(
                f"the output needs a bucket that is there; {bucket!r} is not. Make it first."
            )


@contextmanager
def plain_errors(address: str) -> Generator[None]:
    """What a store of objects refuses, in words for people."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
        raise OSError(
            f"{address!r} cannot be reached: {why}. What was there before is untouched. Check the "
            "address, and that its credentials are where fsspec looks for them (environment)."
        ) from error


def upload(files: Sequence[Path], target: str) -> None:
    """Put files beside a target, under their names; the last is the target itself."""
    system, folder = file_system(target), target.rpartition("/")[0]
    for path in files:
        address = f"{folder}/{path.name}"
        with plain_errors(address):
            _take_back(system, address)
            _put(system, path, address)


def _put(system: Any, path: Path, address: str) -> None:
    """An object that is there when all of it is, or not at all."""
    with path.open("rb") as file:
        new = system.open(address, "wb", autocommit=False, block_size=PART)
        try:
            shutil.copyfileobj(file, new, PART)
            new.close()
            new.commit()
        except BaseException:
            with suppress(Exception):
                new.discard()
            raise


def _take_back(system: Any, address: str) -> None:
    """Parts that a run before had sent for this object when it was killed."""
    if not hasattr(system, "call_s3"):
        return
    bucket, key = address.split("://", 1)[1].split("/", 1)
    begun = system.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=key)
    for one in begun.get("Uploads", []):
        if one["Key"] == key:
            system.call_s3(
                "abort_multipart_upload", Bucket=bucket, Key=key, UploadId=one["UploadId"]
            )


def objects(name: str, suffixes: Sequence[str]) -> list[str]:
    """The objects below a folder that look like data, in the order of their names."""
    system, scheme = file_system(name), name.split("://", 1)[0]
    with plain_errors(name):
        found: list[str] = system.find(name)
    below = PurePosixPath(name.split("://", 1)[1])
    return sorted(
        f"{scheme}://{path}"
        for path in found
        if path.lower().removesuffix(".gz").endswith(tuple(suffixes))
        and not any(
            part.startswith(("_", ".")) for part in PurePosixPath(path).relative_to(below).parts
        )
    )
