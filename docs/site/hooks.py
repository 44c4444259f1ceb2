"""What the site makes of the documents: its first page, links to source files, a missing name."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

README = Path(__file__).parents[2] / "README.md"
OUT = re.compile(r"\[([^\]]+)\]\(\.\./(?:src/)?([^)]+?)(?:\.py)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make the first page of the README; what it links to outside of docs/ becomes text."""
    text = README.read_text(encoding="utf-8").replace("](docs/", "](")
    text = re.sub(r"\[([^\]]+)\]\([A-Z][^)]*\)", r"\1", text)
    files.append(File.generated(config, "index.md", content=text))
    return files


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
