"""From a summary to one page that needs no other file, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shlex
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

from slencodings.files.write import check_place, replacing
from slencodings.report.charts import charts
from slencodings.report.leading import leading
from slencodings.report.markup import Markup, data, join
from slencodings.report.names import shown
from slencodings.report.sections import header, page_footer, sections
from slencodings.report.summary import Items, Summary
from slencodings.report.vega import ON_AXES


def render(found: Summary) -> str:
    """One page of what `summarise` found: HTML with its style, scripts, data and charts inside.

    The page asks nothing of any network, and its policy would not let it, but for pictures that
    are shown by their addresses: those may come from where they are, and from nowhere else. Its
    scripts are known by their hashes, so that no other would run; what comes from data is escaped,
    or text in JSON.

    Examples
    --------
    >>> from slencodings import from_table
    >>> rows = {"item": ["<p>", "<p>", "q"], "y": ["no", "yes", "no"]}
    >>> from slencodings.report import summarise
    >>> page = render(summarise(from_table(rows, item="item", label="y")))
    >>> page[:15], "<p>" in page.split('id="data"')[1].split("</script>")[0]
    ('<!doctype html>', False)
    """
    drawn = charts(found)
    items = found["items"]
    values = {
        "items": {
            "named": found["crowd"]["annotators"] is not None,
            "stated": found["crowd"]["stated"] is not None,
            **{key: items[key] for key in ("annotators", "text", "fields", "pictures", "rows")},
        },
        "annotators": found["annotators"]["rows"],
        "leading": {"truth": found["crowd"]["truth"], **leading(found["crowd"])._asdict()},
        "labels": found["labels"]["names"],
        "short": shown(found["labels"]["names"], ON_AXES),
    }
    return assemble(
        title=f"{found['title']} – report" if found["title"] else "Report of a crowd",
        header=header(found),
        sections=sections(found, set(drawn)),
        values=values,
        drawn=drawn,
        pictures=picture_places(items),
    )


def assemble(
    *,
    title: str,
    header: Markup,
    sections: Markup,
    values: dict[str, Any],
    drawn: dict[str, Any],
    pictures: list[str],
) -> str:
    """A page from its parts: `values` for the script to read, charts, and places of pictures."""
    style, script, library = _file("report.css"), _file("report.js"), _library()
    policy = {
        "default-src": "'none'",
        "script-src": f"{_known(library)} {_known(script)}",
        "style-src": _known(style),
        **({"img-src": " ".join(pictures)} if pictures else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(_file("report.html")).substitute(
        title=html.escape(title),
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=style,
        header=header,
        footer=page_footer(pictures),
        sections=sections,
        data=join([data("data", values), data("charts", drawn)]),
        library=library,
        script=script,
    )


def picture_places(items: Items) -> list[str]:
    """Where pictures are loaded from: hosts in the web, and `file:` for those beside the page."""
    shown = [n for n, name in enumerate(items["fields"]) if name in items["pictures"]]
    found = {row["fields"][n] or "" for row in items["rows"] for n in shown} - {""}
    parts = [urlsplit(address) for address in found]
    # A host that no policy can say is left out, and its pictures are not loaded.
    hosts = {f"{p.scheme}://{p.netloc}" for p in parts if re.fullmatch(r"[\w.:-]+", p.netloc)}
    return sorted(hosts) + ["file:"] * any(not p.scheme for p in parts)


def _file(name: str) -> str:
    return resources.files("slencodings.report").joinpath(name).read_text(encoding="utf-8")


def chart_library() -> Any:
    """What draws charts; an error that says what to install if it is not there."""
    try:
        import vl_convert
    except ImportError as error:
        raise ImportError(
            "the charts of a report need vl-convert, which is not installed. "
            "Type: pip install 'slencodings[report]'"
        ) from error
    return vl_convert


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = chart_library().javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # What would end a script inside a page may stand in its strings and comments.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _known(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def check_page(target: str, source: str | Sequence[str]) -> None:
    """Refuse a place where no page can be written, before any work is done."""
    path = Path(target)
    if path.suffix.lower() not in (".html", ".htm"):
        stem = "report" if target == "-" else path.stem or "report"
        raise ValueError(
            f"a report is a page, so its name must end in .html; {target!r} came. "
            f"Name it {shlex.quote(stem + '.html')}."
        )
    check_place(target, source)


def write_page(page: str, target: str) -> str:
    """Write all of a page or nothing, and tell how large it is."""
    written = page.encode()
    with replacing(Path(target)) as new:
        new.write_bytes(written)
    return f"{len(written) / 1e6:.1f} MB"
