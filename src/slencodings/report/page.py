"""From a crowd in files to a page in a file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slencodings.files.places import check_place
from slencodings.files.write import replacing
from slencodings.report.pairs import render_pairs, summarise_pairs
from slencodings.report.render import chart_library, render
from slencodings.report.summarise import summarise

if TYPE_CHECKING:
    from slencodings.cli.on_a_crowd import Read


def make_page(
    read: Read,
    page: str,
    *,
    pairwise: str | None,
    text: str | None,
    show: Sequence[str],
    gold: str | None,
    time: str | None,
    scored: str | None,
    command: str,
    **settings: Any,
) -> None:
    """Read a crowd and write the page about it; `settings` go to `summarise`."""
    check_page(page, read.source)
    chart_library()
    name = ", ".join("standard input" if name == "-" else name for name in read.source)

    def tell(what: str, done: int, total: int) -> None:
        read.progress(what, done, total, "steps")

    if pairwise is not None:
        of_crowds = {"--text": text, "--show": show, "--gold": gold, "--time": time}
        pairs = read.pairs(pairwise, of_crowds | {"--scored": scored})
        made = {"command": command}
        summary = summarise_pairs(pairs, name=name, made=made, progress=tell, **settings)
        read.progress("drawing", 0, None, "")
        written = write_page(render_pairs(summary), page)
        read.say("wrote", f"{page}: a page of {written}, to open in a browser")
        return
    shown = [*([text] if text else []), *show]
    sources = None if scored is None else ()
    crowd = read.crowd(gold=gold, show=shown, scored=scored, time=time or True, sources=sources)
    found = summarise(
        crowd.annotations,
        text=(text, crowd.fields[text]) if text else None,
        fields={name: crowd.fields[name] for name in show},
        gold=crowd.truth,
        scored=crowd.scored,
        times=crowd.times,
        sources=crowd.confidence(),
        sets=crowd.sets,
        questions=crowd.questions,
        name=name,
        made={"command": command},
        progress=tell,
        **settings,
    )
    read.progress("drawing", 0, None, "")
    read.say("wrote", f"{page}: a page of {write_page(render(found), page)}, to open in a browser")


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
