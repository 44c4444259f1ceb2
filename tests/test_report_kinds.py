"""The page of every kind of answers says and draws what fits: an order, sets, pairs."""

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reporting import two_methods
from running import Sle
from test_pairs import games

from slencodings import from_table, multi_label, pairs_from_table
from slencodings.evaluation import pairs as compared_pairs
from slencodings.report import render, render_pairs, summarise, summarise_pairs

__all__ = ["two_methods"]


@pytest.fixture(autouse=True)
def two_pair_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    some = ("how common", "shares of wins")
    few = {name: compared_pairs.METHODS[name] for name in some}
    monkeypatch.setattr(compared_pairs, "METHODS", few)


def words(page: str) -> str:
    """What can be read on a page, but for what scripts draw."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


@cache
def stars_found() -> Any:
    """What is told of stars."""
    return summarise(stars())


def stars() -> Any:
    rng = np.random.default_rng(0)
    rows = {"item": np.repeat(np.arange(30), 3), "who": ["ann", "bob", "cyd"] * 30}
    true = np.repeat(rng.integers(1, 5, 30), 3)
    rows["stars"] = np.clip(true + rng.integers(0, 2, 90) + np.tile([0, 0, 1], 30), 1, 5)
    return from_table(rows, item="item", annotator="who", label="stars", ordered=[1, 2, 3, 4, 5])


def sets() -> Any:
    rng = np.random.default_rng(0)
    true = np.repeat(rng.random((20, 3)) < 0.4, 3, axis=0)
    said = true ^ (rng.random(true.shape) < 0.1)
    chosen = [[name for name, yes in zip("abc", row, strict=True) if yes] for row in said]
    return multi_label(np.repeat(np.arange(20), 3).tolist(), chosen, annotator=list("xyz") * 20)


def judged(**how: Any) -> Any:
    return games(np.random.default_rng(0), P=4, R=80, side=0.5, tie=-1.0, **how)[0]


def test_labels_in_an_order_have_severity_and_at_least():
    found = stars_found()
    severity, at_least = found["labels"]["kinds"]
    assert severity["dots"][0]["name"] == "cyd"
    assert severity["dots"][0]["value"] > 0.5 > 0 > severity["dots"][-1]["value"]
    assert [row[0] for row in at_least["rows"]] == ["2", "3", "4", "5"]
    shares = [int(row[1].rstrip("%")) for row in at_least["rows"]]
    assert shares == sorted(shares, reverse=True)
    text = words(render(found))
    assert "Krippendorff's ordinal alpha is" in text
    assert "How many steps above the others" in text
    assert "How many items reach each label" in text


def test_names_have_neither():
    rows = {"item": list("ppqq"), "who": list("abab"), "y": list("nyny")}
    crowd = from_table(rows, item="item", annotator="who", label="y")
    found = summarise(crowd)
    assert found["labels"]["kinds"] == []
    assert "ordinal" not in words(render(found))


def test_severity_is_not_told_where_nobody_is_named():
    rows = {"item": list("ppqq"), "y": [1, 2, 2, 3]}
    crowd = from_table(rows, item="item", label="y", ordered=[1, 2, 3])
    assert [part["name"] for part in summarise(crowd)["labels"]["kinds"]] == ["at-least"]


def test_sets_are_told_label_by_label_with_the_agreement_of_whole_sets():
    crowd = sets()
    a, K = crowd.annotations, len(crowd.labels)
    found = summarise(a, sets=crowd.asked_of, questions=list(crowd.labels) * len(crowd.items))
    (part,) = found["labels"]["kinds"]
    assert [row[0] for row in part["rows"]] == ["a", "b", "c"]
    for k, row in enumerate(part["rows"]):
        assert row[1] == f"{np.mean(a.y[a.item % K == k]):.0%}"
    from slencodings.kinds.multilabel import set_alpha

    assert f"Of whole sets alpha is {set_alpha(crowd):.2f}" in part["caption"]
    text = words(render(found))
    assert "a yes or no to each label of each" in text
    assert "Each label Every label is a question" in text
    # Where one label was not asked of an item there are no whole sets.
    some = summarise(a, sets=crowd.asked_of, questions=["a"] * len(a.items))
    assert "whole sets" not in some["labels"]["kinds"][0]["caption"]


def test_the_page_of_pairs_tells_order_judges_methods_and_what_to_compare():
    found = summarise_pairs(judged(), name="games.csv", made={"command": "sle report"})
    text = words(render_pairs(found))
    best = found.scores[0]
    assert found.scores == sorted(found.scores, key=lambda row: -row["score"])
    assert f"{best['score']:.2f} {best['low']:.2f} to {best['high']:.2f}" in text
    assert f"1. {best['option']}" in text or f"{best['option']} comes first" in text
    for title in ("At a glance", "The order of options", "Judges", "Methods compared",
                  "What to compare next", "How it was made"):  # fmt: skip
        assert title in text
    assert "80 judgments of 4 options by 3 judges" in text
    assert "shares of wins" in text
    assert "Compare" in text
    assert f"{found.alpha:.2f}" in text
    wins = np.asarray([[np.nan if x is None else x for x in row] for row in report_chances(found)])
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose((wins + wins.T)[off], 1, atol=1e-3)
    assert (np.triu(wins, 1)[np.triu_indices(4, 1)] >= 0.5).all()  # the best first


def report_chances(found: Any) -> Any:
    from slencodings.report.pairs import _chances

    return _chances(found)


def test_few_pairs_say_what_cannot_be_told():
    table = {"left": ["x", "y"], "right": ["y", "x"], "won": ["x", "tie"]}
    pairs = pairs_from_table(table, left="left", right="right", winner="won")
    text = words(render_pairs(summarise_pairs(pairs)))
    assert "No two judges can be told apart" in text
    assert "held out, and 2 are too few" in text
    assert "not for sure ahead of" in text


def test_names_of_options_and_judges_are_text_on_the_page():
    table = {"left": ["<b>x", "</script>"] * 6, "right": ["</script>", "<b>x"] * 6,
             "won": ["<b>x"] * 9 + ["tie"] * 3, "who": ["<i>a", "b&"] * 6}  # fmt: skip
    pairs = pairs_from_table(table, left="left", right="right", winner="won", annotator="who")
    page = render_pairs(summarise_pairs(pairs, name="<h1>"))
    own = page.split('id="charts"')[0]
    assert "<b>x" not in page.replace("\\u003c", "")
    assert "&lt;b&gt;x" in own
    assert "<i>a" not in own
    assert "<h1>" not in own.replace('<h1 dir="auto">', "")


def test_pairs_are_reported_from_a_shell(sle: Sle):
    rows = ["left,right,winner,judge", *["x,y,x,ann", "y,x,x,bob", "z,x,tie,ann"] * 4]
    Path("pairs.csv").write_text("\n".join(rows) + "\n")
    asked = ("report", "pairs.csv", "--pairwise", "left,right,winner", "-o", "page.html")
    run = sle(*asked, "--least-probability", "0.8")
    assert run.code == 0, run.err
    assert "wrote    page.html: a page of" in run.err
    text = words(Path("page.html").read_text())
    assert "x comes first" in text
    assert "sle report pairs.csv --pairwise left,right,winner -o page.html" in text
    run = sle(*asked, "--gold", "truth")
    assert run.code == 2
    assert "it is not for `--pairwise`" in " ".join(run.err.split())


def test_several_labels_are_reported_from_a_shell(sle: Sle):
    rows = [f"{i},{who},{'a;b' if i % 2 else 'b'}" for i in range(8) for who in ("ann", "bo")]
    Path("m.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    run = sle("report", "m.csv", "--multi", ";", "-o", "page.html", "-q")
    assert run.code == 0, run.err
    text = words(Path("page.html").read_text())
    assert "Each label" in text
    assert "a 50% 4" in text
    assert "Of whole sets alpha is 1.00" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")
def test_every_kind_fits_a_wide_screen_and_a_phone(tmp_path: Path):
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    several = sets()
    labels = list(several.labels) * len(several.items)
    pages = {
        "pairs": render_pairs(summarise_pairs(judged())),
        "stars": render(stars_found()),
        "sets": render(summarise(several.annotations, sets=several.asked_of, questions=labels)),
    }
    drawn = {"pairs": ["ranking", "wins", "discrimination", "compared"], "stars": ["severity"],
             "sets": ["triangle"]}  # fmt: skip
    errors: list[str] = []
    with api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        for name, text in pages.items():
            (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 800})
                page.goto((tmp_path / f"{name}.html").as_uri())
                page.wait_for_selector("html[data-ready=yes]", state="attached")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            for chart in drawn[name]:
                assert page.locator(f"#chart-{chart} svg").count() == 1
        browser.close()
    assert errors == []


def judges_and_people(tmp_path: Path) -> Path:
    """Two people who agree, a model that is wrong by half and sure, and one that knows."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for item in range(40):
        truth = "good" if rng.random() < 0.5 else "bad"
        wrong = "bad" if truth == "good" else "good"
        rows += [{"judge": name, "item": item, "answer": truth} for name in ("ann", "bob")]
        sure = {"judge": "gpt", "item": item, "confidence": 0.9, "logprob": float(np.log(0.6))}
        rows.append(sure | {"answer": truth if item % 2 else wrong})
        knows = {"judge": "llama", "item": item, "confidence": 0.9 if item % 4 else 0.2}
        rows.append(knows | {"answer": truth if item % 4 else wrong})
    path = tmp_path / "judges.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_the_confidence_of_models_is_told_by_what_it_is_read_from(sle: Sle, tmp_path: Path):
    path, page = judges_and_people(tmp_path), tmp_path / "page.html"
    assert sle("report", path, "-o", page, "--scored", "ann,bob").code == 0
    text = words(page.read_text())
    assert "Confidence of models, by what it is read from" in text
    assert re.search(r"gpt confidence 40 0\.90 0\.50 \+0\.40 \(\+0\.\d\d to \+0\.\d\d\) –", text)
    assert re.search(r"llama confidence 40 0\.72 0\.75 -0\.0\d \(.*?\) 1\.00", text)
    assert re.search(r"gpt token confidence 40 0\.60 0\.50 \+0\.10", text)
    assert "llama token confidence" not in text
    assert "Nobody said how sure" not in text
    # gpt is nearer to the other person on no item and as near on half: not inferior by .2 to none.
    assert "By the alternative annotator test no model may stand in for a person, of 2" in text
    assert sle("report", path, "-o", page, "--missing", "drop").code == 0
    text = words(page.read_text())
    assert "Confidence of models" not in text
    assert "alternative annotator test" not in text  # nobody said who is a person
