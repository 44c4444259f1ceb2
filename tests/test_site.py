"""The documentation as a site: built offline with warnings as errors, and asking nobody."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import slencodings

for needed in ("mkdocs", "material", "mkdocstrings", "griffe"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[docs]'")

ROOT = Path(__file__).parents[1]
MODULES = [
    *("aggregate", "confidence", "datasets", "files.exports", "metrics"),
    *("kinds.multilabel", "kinds.ordered", "plot", "report", "torch", "triage", "trust"),
]


def build(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments]
    # The theme speaks of its successor unless told not to; that is no warning about this site.
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = build("--site-dir", str(folder))
    assert run.returncode == 0, run.stderr
    assert "WARNING" not in run.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses that a browser loads by itself, other than links that people click."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {"src", "srcset", "data", "poster"} | ({"href"} if tag == "link" else set())
        self.found += [value or "" for name, value in attrs if name in names]


def far(addresses: list[str]) -> list[str]:
    return [each for each in addresses if re.match(r"(\w+:)?//", each)]


def test_pages_load_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loaded = Loaded(page.read_text()).found
        assert loaded, page
        assert not far(loaded), page
    for style in site.rglob("*.css"):
        assert not far(re.findall(r"""url\(["']?([^)"']+)""", style.read_text())), style
        assert "@import" not in style.read_text(), style


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://unpkg.com/x"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        '<img src="http://example.org/a.png">',
    ],
)
def test_the_search_for_addresses_can_fail(page):
    assert far(Loaded(page).found)


def test_what_pages_load_is_there(site):
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # its addresses are those of a server
            continue
        for address in Loaded(page.read_text()).found:
            path = address.split("?")[0].split("#")[0]
            if path and not path.startswith("data:"):
                assert (page.parent / path).exists(), f"{page.name} loads {address}"


def test_a_broken_link_stops_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md)\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nplugins: []\nhooks: []\nnav: null\n"
    )
    run = build("--config-file", str(config), "--site-dir", str(tmp_path / "site"))
    assert run.returncode != 0
    assert "gone.md" in run.stderr


def public(module: ModuleType) -> list[str]:
    """What a module offers: what it says it does, or else what it defines without a dash."""
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    names = getattr(module, "__all__", own)
    return [f"{module.__name__}.{name}" for name in names if not name.startswith("_")]


def test_every_public_name_is_in_the_reference_and_no_private_one(site):
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    there = set(re.findall(r'<h\d id="(slencodings[\w.]+)"', pages))
    wanted = public(slencodings)
    for name in ("exports", "multilabel", "ordered"):
        wanted.remove(f"slencodings.{name}")  # shown by the name it is imported by
    for name in MODULES:
        wanted += [f"slencodings.{name}", *public(importlib.import_module(f"slencodings.{name}"))]
    assert len(wanted) > 100
    assert not set(wanted) - there
    last = [name.split(".")[-1] for name in there]
    assert not [name for name in last if re.match(r"_(?!_)", name)]


def test_a_function_is_shown_as_one_although_its_file_has_its_name(site):
    page = (site / "reference" / "aggregate.html").read_text()
    heading = re.search(r'<h\d id="slencodings.aggregate.sle".*?</h\d>', page, re.DOTALL)
    assert heading, "aggregate.sle has a heading"
    assert "doc-symbol-function" in heading[0]


def test_the_page_of_everything_names_everything():
    text = (ROOT / "docs" / "one-page.md").read_text()
    said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    for name in ["", *MODULES]:
        module = importlib.import_module(f"slencodings.{name}".rstrip("."))
        assert not {each.split(".")[-1] for each in public(module)} - said


def test_the_first_page_is_the_readme_and_leads_to_every_page(site):
    start = (site / "index.html").read_text()
    assert "One rule is all there is to understand" in start
    for document in (ROOT / "docs").glob("*.md"):
        # Once in the navigation, once in the text.
        assert start.count(f'href="{document.stem}.html') >= 2, document


def test_links_to_source_files_lead_to_the_reference(site):
    page = (site / "paper.html").read_text()
    assert 'href="reference/opinions.html#slencodings.fuse"' in page
    assert "../src/" not in page
    assert "<autoref" not in page


@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium; scripts/browser")
def test_pages_open_from_disk_and_search_without_a_network(site):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    asked: list[str] = []
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((site / "reference" / "opinions.html").as_uri())
        found = page.locator(".md-search-result__item").first
        # The search hears keys, and not text that is put in its place. One is enough: of a letter
        # that stands alone the theme complains.
        query = page.locator("[data-md-component=search-query]")
        query.fill("fuse_compromis")
        query.press("e")
        found.wait_for(timeout=60_000)
        assert "fuse_compromise" in found.inner_text()
        browser.close()
    assert not complaints
    assert asked
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
