"""What the site changes on its pages: links to source files, and a name that is missing."""

import re
from typing import Any

OUT = re.compile(r"\[([^\]]+)\]\(\.\./(?:src/)?([^)]+?)(?:\.py)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links to source files, which work on GitHub, to the reference; others become text.

    `alpha` in ../src/slencodings/opinion.py is slencodings.opinion.alpha.
    """

    def lead(found: re.Match[str]) -> str:
        text, path = found.groups()
        name = ".".join([*path.split("/"), *re.findall(r"\w+(?=`)", text)[:1]])
        return f'<autoref identifier="{name}" optional>{text}</autoref>'

    # Pages in folders have `../` inside of docs/.
    return markdown if "/" in page.file.src_uri else OUT.sub(lead, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Name the theme's search for screen readers."""
    search = 'data-md-component="search" role="dialog"'
    return output.replace(search, f'{search} aria-label="Search"')
