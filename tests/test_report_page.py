"""The report in a real browser: it loads alone, works by mouse and by keys, and lets nobody in."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from crowds import named_crowd
from reporting import HOSTILE, hostile

from slencodings.annotations import Annotations
from slencodings.report import render, summarise

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parents[1] / "build/browser/node_modules/axe-core/axe.min.js"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
)
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium; scripts/browser installs it"
    ),
]

Open = Callable[..., Any]
# Halfway between two roundings, exactly or nearly.
HALVES = [0.125, 0.375, 0.0625, 0.5255, 0.5254999, 0.5255001, 0.145, 0.285, 1.0, 0.0005, 0.9995]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


def with_every_verdict() -> Annotations:
    """Long names, one who is against the crowd, one at chance, and two of few answers."""
    said = named_crowd(n=160, per=4, people=9, labels=2)
    said = replace(
        said,
        stated=1 - said.uncertainty,
        annotators=np.asarray([f"{m} a-name-of-one-word@example.org" for m in range(9)]),
        labels=np.asarray(["one_label_without_an_end_000001", "one_label_without_an_end_000002"]),
        y=np.select([said.annotator == 0, said.annotator == 1], [1 - said.y, 0], said.y),
    )
    seldom = [np.flatnonzero(said.annotator == m)[2:] for m in (7, 8)]
    return said.rows(np.setdiff1d(np.arange(len(said.item)), np.concatenate(seldom)))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of a plain crowd and one of a crowd whose names are attacks."""
    folder = tmp_path_factory.mktemp("pages")
    found = {
        "plain": summarise(
            named_crowd(n=60, per=3),
            name="plain",
            least_probability=0.7,
            times=np.datetime64("2026-03-01", "s") + np.arange(180) * np.timedelta64(3, "h"),
        ),
        "hostile": summarise(hostile(), name=HOSTILE[1], made={"command": HOSTILE[3]}),
        "formulas": summarise(
            replace(named_crowd(n=5), items=np.asarray(["=1+1", "+1", "-1", "@x", 'a "b", c']))
        ),
        "votes only": summarise(named_crowd(n=20), reliability=np.linspace(0.2, 0.9, 60)),
        "numbers": summarise(replace(named_crowd(n=20), labels=np.arange(20, 23))),
        "verdicts": summarise(with_every_verdict()),
        "halves": summarise(named_crowd(n=len(HALVES))),
    }
    rows = found["halves"]["items"]["rows"]
    for n, (row, half) in enumerate(zip(rows, HALVES, strict=True)):
        row["item"], row["uncertainty"], row["conflict"] = f"i{n}", half, half
    for name, summary in found.items():
        (folder / f"{name}.html").write_text(render(summary), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in found}


class Tab(NamedTuple):
    """A tab of the browser, what it asked for and what it said since a test began."""

    page: Any
    asked: list[str]
    said: list[str]


@pytest.fixture(scope="module")
def tab(browser: Any) -> Tab:
    """One for all tests: a new one begins its own process, and reads all scripts anew."""
    tab = Tab(browser.new_page(), [], [])
    tab.page.set_default_timeout(60_000)
    tab.page.on("request", lambda request: tab.asked.append(request.url))
    tab.page.on("console", lambda message: tab.said.append(message.text))
    tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
    tab.page.on("dialog", lambda dialog: tab.said.append(dialog.message))
    return tab


@pytest.fixture
def opened(tab: Tab, pages: dict[str, Path]) -> Iterator[Open]:
    """Opens a page from disk; at the end nothing was asked of a network, and nothing went wrong."""
    tab.asked.clear()
    tab.said.clear()

    def open_page(name: str, colours: str = "light", width: int = 1280, height: int = 720) -> Any:
        tab.page.emulate_media(media="screen", color_scheme=colours)
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.goto(pages[name].as_uri())
        tab.page.wait_for_selector("html[data-ready=yes]", state="attached")
        return tab.page

    yield open_page
    assert [url.split(":")[0] for url in tab.asked] == ["file"]
    assert tab.said == []


def column(page: Any, table: str, head: str) -> list[str]:
    """The cells of a column as they are shown."""
    heads = page.locator(f"#{table} thead th").all_inner_texts()
    n = next(i for i, text in enumerate(heads) if text.strip() == head) + 1
    return page.locator(f"#{table} tbody tr:not(.detail) > :nth-child({n})").all_inner_texts()


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.strip("%")) for cell in cells]


def test_it_loads_from_disk_with_every_chart_drawn(opened: Open):
    page = opened("plain")
    drawn = page.locator(".chart")
    assert drawn.count() == 9
    for i in range(drawn.count()):
        assert drawn.nth(i).locator("svg").count() == 1
        assert drawn.nth(i).get_attribute("aria-label").startswith("Chart. ")
    assert page.locator("h1").inner_text() == "plain"
    heads = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))"
    )
    assert heads[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(heads))


def test_sorting_by_mouse_and_by_keys_orders_all_items_and_says_so(opened: Open):
    page = opened("plain")
    table = page.locator("#items-table")
    assert table.locator("th[aria-sort=descending]").inner_text().strip() == "Doubt"
    first = numbers(column(page, "items-table", "Doubt"))
    assert first == sorted(first, reverse=True)
    table.get_by_role("button", name="Doubt").click()
    assert table.locator("th[aria-sort=ascending]").inner_text().strip() == "Doubt"
    least = numbers(column(page, "items-table", "Doubt"))
    assert least == sorted(least)
    assert least[0] <= first[-1]
    press = table.get_by_role("button", name="Conflict")
    press.focus()
    page.keyboard.press("Enter")
    sharp = numbers(column(page, "items-table", "Conflict"))
    assert sharp == sorted(sharp, reverse=True)
    assert press.evaluate("(node) => node === document.activeElement")
    page.keyboard.press("Space")
    assert numbers(column(page, "items-table", "Conflict"))[0] <= sharp[-1]
    table.get_by_role("button", name="Item", exact=True).click()
    assert column(page, "items-table", "Item")[:3] == ["item 0", "item 1", "item 2"]


def test_searching_filtering_and_paging_find_the_items_there_are(opened: Open):
    page = opened("plain")
    table = page.locator("#items-table")
    status = table.get_by_role("status")
    assert status.inner_text() == "1 to 25 of 60 items"
    table.get_by_role("button", name="Next").click()
    assert status.inner_text() == "26 to 50 of 60 items"
    table.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    assert status.inner_text() == "51 to 60 of 60 items"
    assert table.get_by_role("button", name="Next").is_disabled()
    table.get_by_label("Search items").fill("ITEM 1")
    assert status.inner_text() == "1 to 11 of 11 items"
    assert all(name.startswith("item 1") for name in column(page, "items-table", "Item"))
    table.get_by_label("Search items").fill("no such item")
    assert "No items match." in table.inner_text()
    table.get_by_label("Search items").fill("")
    chip = table.locator("label", has_text="Conflict")
    chip.locator("input").check()
    assert set(column(page, "items-table", "State")) == {"conflict"}
    split = status.inner_text()
    assert split.endswith(f"of {chip.inner_text().strip('Conflict ()')} items")
    page.keyboard.press("ArrowRight")
    assert table.get_by_label("Hangs on one annotation").is_checked()
    assert status.inner_text() != split


def test_an_item_opens_to_its_annotations_and_what_each_would_change(opened: Open):
    page = opened("plain")
    table = page.locator("#items-table")
    table.get_by_label("Hangs on one annotation").check()
    press = table.locator("button.more").first
    assert press.get_attribute("aria-expanded") == "false"
    below = page.locator(f"[id='{press.get_attribute('aria-controls')}']")
    press.focus()
    page.keyboard.press("Enter")
    assert press.get_attribute("aria-expanded") == "true"
    assert below.locator("tbody tr").count() == 3
    assert below.locator("thead th").all_inner_texts() == [
        "Annotator", "Said", "Confidence", "Weight", "True without them"
    ]  # fmt: skip
    assert "would be label" in below.locator(".changes").first.inner_text()
    press.click()
    assert not below.is_visible()


def test_where_truth_was_not_asked_no_head_and_no_sentence_calls_a_vote_true(opened: Open):
    page = opened("votes only")
    assert page.locator("#items-table thead th").all_inner_texts()[1].strip() == "Likeliest vote"
    for table in ("items", "annotators"):
        page.locator(f"#{table}-table button.more").first.click()
    shown = page.locator("main").inner_text().replace("nothing of what is true", "")
    assert "The likeliest vote is" in shown
    assert "Likeliest vote without them" in shown
    # What is said of other data and of directions, and why there is no truth.
    about = ("one true label each", "Who is right was not", "Further right")
    lines = [line for line in shown.splitlines() if re.search(r"\b(true|right)\b", line, re.I)]
    assert [line for line in lines if not any(words in line for words in about)] == []
    helps = page.locator("[title]").evaluate_all("(all) => all.map((node) => node.title)")
    assert not any("true" in text or "right" in text for text in helps)


def test_labels_that_are_numbers_do_not_run_into_their_shares(opened: Open):
    page = opened("numbers")
    likely = [cell.splitlines()[0] for cell in column(page, "items-table", "Likely true")]
    assert all(re.fullmatch(r"2[012]: \d+%", cell) for cell in likely), likely
    bars = page.locator(".belief").evaluate_all("(all) => all.map((bar) => bar.ariaLabel)")
    assert all(re.fullmatch(r"(2[012]: \d+%; )+unknown: \d+%", bar) for bar in bars), bars
    page.locator("#items-table button.more").first.click()
    opened_item = page.locator("#items-table tr.detail").first
    assert re.search(r"Likeliest true is “2[012]”, \d+%\.", opened_item.inner_text())
    without = opened_item.locator("td[data-head='True without them']").all_inner_texts()
    assert all(re.fullmatch(r"(still|would be) 2[012]: \d+%", cell) for cell in without), without


def test_annotators_can_be_sorted_and_searched(opened: Open):
    page = opened("plain")
    table = page.locator("#annotators-table")
    worst = numbers([cell.split()[0] for cell in column(page, "annotators-table", "Above chance")])
    assert worst == sorted(worst)
    table.get_by_role("button", name="Earned").click()
    earned = numbers(column(page, "annotators-table", "Earned"))
    assert earned == sorted(earned, reverse=True)
    assert len(earned) == 6
    table.get_by_label("Search annotators").fill("person 3")
    assert column(page, "annotators-table", "Annotator") == ["person 3"]


def test_links_lead_to_an_item_and_to_an_annotator_whatever_is_shown(opened: Open):
    page = opened("plain")
    table = page.locator("#items-table")
    table.get_by_label("Search items").fill("no such item")
    page.locator("#annotators-table button.more").first.click()
    link = page.locator("#annotators-table .detail a").first
    name = link.inner_text()
    link.click()
    row = table.locator("button.more[aria-expanded=true]")
    assert row.inner_text() == name
    assert row.evaluate("(node) => node === document.activeElement")
    assert table.get_by_label("Search items").input_value() == ""
    who = table.locator(".detail:not([hidden]) a").first
    person = who.inner_text()
    page.locator("#annotators-table").get_by_label("Search annotators").fill("nobody")
    who.click()
    opened_people = page.locator("#annotators-table button.more[aria-expanded=true]")
    assert opened_people.inner_text() == person
    first = page.locator("#next a").first
    name = first.inner_text()
    first.click()
    # A link to another place is followed a moment later.
    sync_api.expect(table.locator("button.more[aria-expanded=true]")).to_have_text(name)
    # The same link works again after the list was changed by hand.
    table.get_by_label("Search items").fill("no such item")
    first.click()
    sync_api.expect(table.locator("button.more[aria-expanded=true]")).to_have_text(name)


def test_the_items_that_are_shown_are_saved_as_csv(opened: Open, tmp_path: Path):
    page = opened("hostile")
    page.get_by_label("Search items").fill("script")
    shown = column(page, "items-table", "Item")
    with page.expect_download() as download:
        page.locator("#items-table").get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "items.csv"
    download.value.save_as(tmp_path / "items.csv")
    with (tmp_path / "items.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    # A screen shows several spaces as one.
    assert [row["item"].split() for row in rows] == [name.split() for name in shown]
    assert {"likely_true", "probability", "people_would_say", "doubt", "conflict"} <= set(rows[0])
    assert all(0 <= float(row["doubt"]) <= 1 for row in rows)


def test_what_a_spreadsheet_would_run_is_saved_as_text(opened: Open, tmp_path: Path):
    page = opened("formulas")
    with page.expect_download() as download:
        page.locator("#items-table").get_by_role("button", name="Save as CSV").click()
    download.value.save_as(tmp_path / "items.csv")
    with (tmp_path / "items.csv").open(encoding="utf-8-sig", newline="") as file:
        names = {row["item"] for row in csv.DictReader(file)}
    assert names == {"'=1+1", "'+1", "'-1", "'@x", 'a "b", c'}


def test_numbers_are_rounded_as_on_the_terminal(opened: Open):
    page = opened("halves")
    values = json.loads(page.locator("#data").text_content())["items"]["rows"]
    rows = {row["item"]: row for row in values}
    for name, doubt, conflict in zip(
        column(page, "items-table", "Item"),
        column(page, "items-table", "Doubt"),
        column(page, "items-table", "Conflict"),
        strict=True,
    ):
        assert doubt == f"{rows[name.split()[0]]['uncertainty']:.3f}"
        assert conflict == f"{rows[name.split()[0]]['conflict']:.2f}"


def test_charts_are_read_out_by_their_names_alone(opened: Open):
    page = opened("plain")
    snapshot = page.locator("#compared").aria_snapshot()
    assert 'img "Chart. How well held-out votes are predicted.' in snapshot
    assert "graphics" not in snapshot


def test_a_keyboard_reaches_the_report_past_the_links(opened: Open):
    page = opened("plain")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_names_that_attack_do_nothing_and_are_shown_as_they_are(opened: Open):
    page = opened("hostile")
    assert "broken" not in page.title().replace("'broken'", "")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 4
    shown = column(page, "items-table", "Item")
    assert HOSTILE[0] in shown
    assert HOSTILE[3] in shown
    assert HOSTILE[6] in shown
    assert all(len(name) <= 110 for name in shown)
    for press in page.locator("#items-table button.more").all():
        press.click()
    said = page.locator(".detail tbody tr").all_inner_texts()
    assert any(HOSTILE[0] in text for text in said)
    page.get_by_label("Search items").fill("<script>")
    assert page.locator("#items-table").get_by_role("status").inner_text().endswith(" items")
    # A pointer over every chart brings up what it is on, as text.
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.hover()
    assert page.locator("#tip *").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def test_a_policy_stops_scripts_and_requests_that_are_not_its_own(browser: Any, pages: Any):
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(pages["plain"].as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'broken'";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
          document.body.append(image);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.title() == "plain – report"
    assert sum("Content Security Policy" in text for text in refused) == 2
    page.close()


# Each would set `hurt`, or ask something of an address where nobody is.
AWAY = "http://127.0.0.1:9/"
INJECTIONS = [
    "<script>hurt=1</script>",
    "</script><script>hurt=1</script>",
    "</title></style></textarea><script>hurt=1</script>",
    "<img src=x onerror=hurt=1>",
    "\"'><img src=x onerror=hurt=1>",
    "<svg onload=hurt=1><animate onbegin=hurt=1 attributeName=x></svg>",
    "<svg><script>hurt=1</script></svg>",
    "<iframe srcdoc='<script>parent.hurt=1</script>'></iframe>",
    "<a href='javascript:hurt=1' id=click>x</a>",
    "javascript:hurt=1",
    "<details open ontoggle=hurt=1>x</details>",
    "<input autofocus onfocus=hurt=1>",
    "<template shadowrootmode=open><img src=x onerror=hurt=1></template>",
    f"<script src={AWAY}x.js></script>",
    f"<img src={AWAY}x.png>",
    f"<link rel=stylesheet href={AWAY}x.css>",
    f"<style>@import '{AWAY}y.css'; body {{background: url({AWAY}z.png)}}</style>",
    f"<object data={AWAY}></object><embed src={AWAY}e>",
    f"<video src={AWAY}v autoplay onerror=hurt=1></video>",
    f"<form action={AWAY}><button id=send>x</button></form>",
    "{{constructor.constructor('hurt=1')()}}",
    "${hurt=1}`${window.hurt=1}`",
    "');hurt=1;//\\');hurt=1;//",
    "datum.x || (window.hurt = 1)",
    "<math><mtext><table><mglyph><style><img src=x onerror=hurt=1></style></math>",
]
# No policy can stop these, so that they are text is all that there is.
NAVIGATIONS = [f"<meta http-equiv=refresh content='0;url={AWAY}'>", f"<base href={AWAY}>", "<!--"]


def test_nothing_that_is_injected_anywhere_is_more_than_text(
    opened: Open, pages: dict[str, Path], sle: Any, tmp_path: Path
):
    """As names of items, annotators, labels, columns and the file, and as texts."""
    bad = [*INJECTIONS, *NAVIGATIONS]
    heads = [f"<img src=x onerror=hurt=1>{n}</script>" for n in range(5)]
    rows = [
        [bad[i], bad[(i + k) % len(bad)], bad[(i * k) % 3], bad[i], bad[-1 - i]]
        for i in range(len(bad))
        for k in range(3)
    ]
    name = "<img src=x onerror=hurt=1>'\"&.csv"
    with (tmp_path / name).open("w", newline="") as file:
        csv.writer(file).writerows([heads, *rows])
    columns = ("--item", heads[0], "--annotator", heads[1], "--label", heads[2])
    shown = ("--text", heads[3], "--show", heads[4])
    run = sle("report", name, "-o", "page.html", *columns, *shown, "--confidence", "1")
    assert run.code == 0, run.err
    pages["injected"] = tmp_path / "page.html"
    page = opened("injected")
    page.evaluate("document.querySelectorAll('button.more').forEach((press) => press.click())")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert page.evaluate("typeof hurt") == "undefined"
    assert page.evaluate("document.scripts.length") == 4
    made = "img, iframe, object, embed, video, form[action], base, link, math, [onerror], [onload]"
    assert page.locator(made).count() == 0
    assert page.locator("a[href^='javascript' i]").count() == 0
    assert {*column(page, "items-table", "Item")} & {*INJECTIONS}


def test_the_policy_stops_what_would_be_markup_after_all(
    browser: Any, pages: dict[str, Path], tmp_path: Path
):
    """The same as markup, as if it had not been escaped: nothing runs, and nothing is asked."""
    raw = "".join(f"<div>{text}</div>" for text in INJECTIONS)
    text = (
        pages["plain"].read_text(encoding="utf-8").replace('<div id="tip"', f'{raw}<div id="tip"')
    )
    (tmp_path / "raw.html").write_text(text, encoding="utf-8")
    page, refused, asked = browser.new_page(), [], []
    page.on("console", lambda message: refused.append(message.text))
    page.on("response", lambda response: asked.append(response.url))
    page.on("requestfinished", lambda request: asked.append(request.url))
    page.goto((tmp_path / "raw.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    for name in ("click", "send"):
        page.locator(f"#{name}").evaluate("(node) => node.click()")
    page.wait_for_timeout(300)
    assert page.evaluate("typeof hurt") == "undefined"
    assert {url.split(":")[0] for url in asked} == {"file"}
    assert page.url.startswith("file:")
    stopped = " ".join(refused)
    for kind in ("script-src", "style-src", "form-action", "default-src"):
        assert kind in stopped, kind
    assert sum("Content Security Policy" in text for text in refused) >= 15
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core; scripts/browser installs it")
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_it_has_no_serious_barriers(opened: Open, name: str, colours: Any):
    page = opened(name, colours)
    page.locator("#items-table button.more").first.click()
    for fold in page.locator("details").all():
        fold.evaluate("(node) => { node.open = true; }")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    told = [
        (rule["id"], rule["nodes"][0]["html"][:200], rule["nodes"][0].get("failureSummary"))
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert told == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_no_column_of_annotators_is_out_of_sight_whatever_the_verdicts(opened: Open, colours: str):
    page = opened("verdicts", colours, width=1280)
    verdicts = set(column(page, "annotators-table", "Verdict"))
    assert {"against the crowd", "at chance", "too few to tell"} <= verdicts
    assert len(page.locator("#annotators-table thead th").all()) == 10
    cut = page.locator(":is(#annotators-table, #items-table) > .scroll").evaluate_all(
        "(all) => all.map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert cut == [0, 0]


def test_on_a_narrow_screen_no_cell_is_out_of_sight(opened: Open):
    page = opened("plain", width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    cells = page.locator("table.cards > tbody > tr:not(.detail) > *")
    ends = cells.evaluate_all(
        "(all) => all.filter((cell) => cell.checkVisibility())"
        ".map((cell) => cell.getBoundingClientRect().right)"
    )
    assert len(ends) > 200
    assert max(ends) <= 390
    assert (
        page.locator("#items-table td[data-head=Doubt]").first.evaluate(
            "(cell) => getComputedStyle(cell, '::before').content"
        )
        == '"Doubt"'
    )


def test_print_has_no_controls_and_keeps_charts_and_first_items(opened: Open):
    page = opened("plain")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".controls").first.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator(".chart svg").first.is_visible()
    assert page.locator("#items-table tbody tr:not(.detail)").count() == 25
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(0, 0, 0)"


@pytest.mark.parametrize("width", [1280, 390])
def test_an_annotator_opens_to_their_parts_of_time_on_screens_of_any_width(
    opened: Open, width: int
):
    page = opened("plain", width=width, height=844)
    page.locator("#annotators-table button.more").first.click()
    page.locator("#items-table button.more").first.click()
    own = page.locator("#annotators-table tr.detail").first
    tables = {
        table.locator("caption").inner_text().split(":")[0].split(" (")[0]: table
        for table in own.locator("table").all()
    }
    assert list(tables) == [
        "What they say",
        "Where they differ most from what is likely true",
        "Over time",
    ]
    parts = tables["Over time"].locator("tbody tr")
    assert parts.count() >= 2
    when = parts.locator(".when").all_inner_texts()
    assert when[0].startswith("2026-03-0")
    assert when == sorted(when)
    assert all(bar.bounding_box()["width"] > 0 for bar in parts.locator(".meter b").all())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.locator("tr.detail table.cards").evaluate_all(
        "(all) => all.filter((table) => table.scrollWidth > table.parentElement.clientWidth)"
    )
    assert cut == []


def test_in_print_no_table_is_wider_than_the_page_and_heads_are_repeated(opened: Open):
    # A4 without its margins.
    page = opened("plain", width=688, height=1000)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 690
    shown = "getComputedStyle(head).display"
    heads = page.locator(".cards > thead").evaluate_all(f"(all) => all.map((head) => {shown})")
    assert len(heads) >= 3
    assert set(heads) == {"table-header-group"}


def test_words_that_begin_with_a_number_are_read_from_the_left(opened: Open):
    page = opened("plain")
    why = page.locator("#next td[data-head=Why]")
    assert why.count() > 0
    styles = why.evaluate_all("(all) => all.map((cell) => getComputedStyle(cell).textAlign)")
    assert set(styles) <= {"left", "start"}
    assert page.locator("#next td[data-head=Conflict].n").count() > 0
