"""A page in a file: where it may be, and all of it or nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from slencodings.files.write import check_place, replacing


def check_page(target: str, source: str | Sequence[str]) -> None:
    """Refuse a place where no page can be written, before any work is done."""
    path = Path(target)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"a report is a page, so its name must end in .html; {target!r} came. "
            f"Name it {shlex.quote((path.stem or 'report') + '.html')}."
        )
    check_place(target, source)


def write_page(page: str, target: str) -> str:
    """Write all of a page or nothing, and tell how large it is."""
    written = page.encode()
    with replacing(Path(target)) as new:
        new.write_bytes(written)
    return f"{len(written) / 1e6:.1f} MB"
