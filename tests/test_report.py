"""What a report says is what the library says, and nothing on its page comes alive."""

import importlib
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crowds import named_crowd

from slencodings import aggregate, triage
from slencodings.aggregate.agreement import judgments
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.evaluation import compare
from slencodings.report import render, summarise
from slencodings.report.charts import charts
from slencodings.report.labels import times_confused
from slencodings.report.people import NO_NAMES, NOT_SHARED, pair_agreement
from slencodings.report.without import without_each
from slencodings.tables.arrays import from_table
from slencodings.trust.apply import weigh

# The package has a function of this name.
SUMMARISE = importlib.import_module("slencodings.report.summarise")
WELL_KNOWN = SUMMARISE.well_known


def quick(a):
    """Two methods that take no time."""
    return ["soft votes", "SLE, full trust"]


HOSTILE = [
    "<script>document.title = 'broken'</script>",
    "</script><script>document.title = 'broken'</script>",
    "<!--<script>",
    "\"'><img src=x onerror=\"document.title='broken'\">",
    "&lt;b&gt; &amp; ]]>",
    "\u202eright to left\u202c",
    "שלום עולם",
    "😀👩‍👩‍👧 emoji",
    "line\u2028break\u2029\x00\n\ttab",
    "x" * 10_000,
    "",
    "{{constructor.constructor('document.title=1')()}}",
    "datum['x'] = `${1}`",
]


def nameless(said: Annotations) -> Annotations:
    nobody = np.asarray(["anonymous"], dtype=object)
    return replace(said, annotator=np.zeros(len(said.item), dtype=np.intp), annotators=nobody)


def softened(said: Annotations) -> Annotations:
    return replace(said, y=0.8 * said.vectors + 0.2 / len(said.labels))


def sure(said: Annotations) -> Annotations:
    return replace(said, uncertainty=np.zeros(len(said.item)))


CROWDS = {
    "two labels": named_crowd(labels=2),
    "three labels": named_crowd(),
    "ten labels": named_crowd(labels=10),
    "thirty labels": named_crowd(labels=30, n=12),
    "one label": named_crowd(labels=1, n=12),
    "one annotation each": named_crowd(per=1),
    "no names": nameless(named_crowd()),
    "no names, one each": nameless(named_crowd(per=1)),
    "nobody said how sure": sure(named_crowd()),
    "soft labels": softened(named_crowd()),
    "an item that nobody labelled": named_crowd(
        items=np.asarray([*range(24), "extra"], dtype=object)
    ),
    "somebody twice": named_crowd(annotator=np.tile([0, 0, 1], 24)),
    "one person": named_crowd(per=1, people=1),
    "few items": named_crowd(n=3),
    "two items": named_crowd(n=2, per=2),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests compare but two methods, as that takes most of the time."""
    monkeypatch.setattr(SUMMARISE, "well_known", quick)


@pytest.fixture(scope="module")
def summaries() -> dict[str, Any]:
    """Of every crowd; one of them with all methods compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SUMMARISE, "well_known", WELL_KNOWN)
        whole = summarise(CROWDS["three labels"], name="three labels")
        patch.setattr(SUMMARISE, "well_known", quick)
        found = {name: summarise(said, name=name) for name, said in CROWDS.items()}
        return found | {"three labels": whole}


@pytest.mark.parametrize("name", CROWDS)
def test_a_summary_of_any_crowd_survives_json_and_becomes_a_page(
    summaries: dict[str, Any], name: str
):
    found = summaries[name]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    page = render(found)
    assert page.startswith("<!doctype html>")
    assert page == render(json.loads(json.dumps(found)))


def test_the_same_crowd_and_seed_give_the_same_summary(summaries: dict[str, Any]):
    again = summarise(CROWDS["ten labels"], name="ten labels")
    assert again == summaries["ten labels"]


def opinions_of(found: Any) -> dict[str, dict[str, Any]]:
    return {row["item"]: row for row in found["items"]["rows"]}


def assert_opinions(found: Any, said: Annotations, opinion: Any) -> None:
    rows = opinions_of(found)
    assert len(rows) == len(said.items)
    for i, name in enumerate(said.items.tolist()):
        row = rows[str(name)]
        top = int(np.argmax(opinion.probability[i]))
        assert row["uncertainty"] == pytest.approx(opinion.uncertainty[i], abs=1e-4)
        assert row["probability"] == pytest.approx(opinion.probability[i, top], abs=1e-4)
        for k, b in row["belief"]:
            assert b == pytest.approx(opinion.belief[i, k], abs=1e-4)


@pytest.mark.parametrize("name", ["two labels", "ten labels", "no names", "soft labels"])
def test_opinions_are_those_of_learned_trust_as_in_triage(summaries: dict[str, Any], name: str):
    said = CROWDS[name]
    assert_opinions(summaries[name], said, weigh(said).opinion)
    assert summaries[name]["crowd"]["trust"] == "learned"


def test_opinions_with_given_reliability_are_those_of_sle():
    said = named_crowd()
    r = {name: 0.3 + 0.1 * m for m, name in enumerate(said.annotators.tolist())}
    found = summarise(said, reliability=r)
    assert_opinions(found, said, aggregate.sle(said, reliability=r))
    given = {row["annotator"]: row["reliability"] for row in found["annotators"]["rows"]}
    assert given == pytest.approx(r)


def test_where_nothing_can_be_learned_all_are_trusted_alike(summaries: dict[str, Any]):
    found = summaries["one annotation each"]
    assert_opinions(
        found, CROWDS["one annotation each"], aggregate.sle(CROWDS["one annotation each"])
    )
    assert found["crowd"]["trust"] == "alike"
    assert found["annotators"]["why_not"] == NOT_SHARED
    assert all(row["reliability"] is None for row in found["annotators"]["rows"])


@pytest.mark.parametrize("name", ["three labels", "soft labels", "somebody twice", "no names"])
@pytest.mark.parametrize("given", [True, False])
def test_without_an_annotator_is_what_fusing_the_others_gives(name: str, given: bool):
    said = CROWDS[name].completed(np.linspace(0.2, 0.9, len(CROWDS[name].item)) if given else None)
    weighed = weigh(said)
    found = without_each(said, weighed)
    now = np.argmax(weighed.opinion.probability, axis=1)
    who = said.annotator if name != "no names" else np.arange(len(said.item))
    for q in range(len(said.item)):
        keep = ~((said.item == said.item[q]) & (who == who[q]))
        left = said.rows(keep)
        trust = weighed.trust
        opinion = aggregate.sle(left) if trust is None else trust.opinion(left)
        P = opinion.probability[said.item[q]]
        at = found.pair[q]
        assert found.probability[at] == pytest.approx(P.max(), abs=1e-9)
        assert found.uncertainty[at] == pytest.approx(opinion.uncertainty[said.item[q]], abs=1e-9)
        assert P[found.leader[at]] == pytest.approx(P.max(), abs=1e-8)
        assert found.changed[at] == (P[now[said.item[q]]] < P.max() - 1e-9)


def test_everybody_left_out_in_parts_is_the_same_as_at_once(monkeypatch: pytest.MonkeyPatch):
    said = named_crowd()
    weighed = weigh(said.completed(0.6))
    whole = without_each(said, weighed)
    monkeypatch.setattr("slencodings.report.without._AT_ONCE", 7)
    for one, other in zip(whole, without_each(said, weighed), strict=True):
        np.testing.assert_array_equal(one, other)


def test_labels_changed_counts_the_items_that_hang_on_somebody():
    said = from_table(
        {
            "item": ["p", "p", "p", "q", "q", "q"],
            "who": ["ann", "bob", "cyd"] * 2,
            "y": ["yes", "yes", "no", "no", "no", "no"],
        },
        item="item",
        annotator="who",
        label="y",
    )
    found = summarise(said, reliability={"ann": 0.5, "bob": 0.6, "cyd": 0.65})
    changed = {row["annotator"]: row["items_changed"] for row in found["annotators"]["rows"]}
    # ann and bob outweigh cyd together (1 + 1.5 > 1.86), neither does alone.
    assert changed == {"ann": 1, "bob": 1, "cyd": 0}
    votes = opinions_of(found)["p"]["annotations"]
    who = found["items"]["annotators"]
    names = found["labels"]["names"]
    assert {who[v[0]]: (names[v[1]], names[v[5]]) for v in votes} == {
        "ann": ("yes", "no"),
        "bob": ("yes", "no"),
        "cyd": ("no", "yes"),
    }
    assert [v[4] for v in votes] == sorted((v[4] for v in votes), reverse=True)


@pytest.mark.parametrize("name", ["three labels", "soft labels", "somebody twice"])
def test_confusion_counts_pairs_of_people_on_an_item(name: str):
    said = judgments(CROWDS[name]).shared()
    K = len(CROWDS[name].labels)
    y = np.zeros((len(said.item), K))
    y[said.row, said.label] = said.value
    expected = np.zeros((K, K))
    for i in range(len(y)):
        others = [j for j in range(len(y)) if said.item[j] == said.item[i] and j != i]
        for j in others:
            expected += np.outer(y[i], y[j]) / len(others)
    np.testing.assert_allclose(times_confused(said, K), expected, atol=1e-12)


def test_people_without_names_still_show_which_labels_are_confused(
    summaries: dict[str, Any],
):
    named, unnamed = (
        summaries[name]["labels"]["confused"] for name in ("three labels", "no names")
    )
    assert named == unnamed


@pytest.mark.parametrize("name", ["three labels", "soft labels", "somebody twice"])
def test_pairs_agree_as_often_as_they_say_the_same(name: str):
    said = CROWDS[name]
    K, names = len(said.labels), [str(m) for m in range(len(said.annotators))]
    shared = judgments(said).shared()
    found = pair_agreement(shared, len(names), K, names)
    assert found is not None
    y = np.zeros((len(shared.item), K))
    y[shared.row, shared.label] = shared.value
    for i, one in enumerate(found["annotators"]):
        for j, other in enumerate(found["annotators"]):
            both = [
                float(y[p] @ y[q])
                for p in np.flatnonzero(shared.annotator == int(one))
                for q in np.flatnonzero(shared.annotator == int(other))
                if shared.item[p] == shared.item[q]
            ]
            if i == j or not both:
                assert found["agreement"][i][j] is None
            else:
                assert found["agreement"][i][j] == pytest.approx(np.mean(both), abs=1e-4)
                assert found["shared"][i][j] == len(both)


def test_annotators_are_those_of_the_roster(summaries: dict[str, Any]):
    said = CROWDS["three labels"]
    roster = describe_annotators(
        said, estimates=["learned", "agreement", "kappa"], groups=10
    ).to_rows()
    rows = {row["annotator"]: row for row in summaries["three labels"]["annotators"]["rows"]}
    for row in roster:
        mine = rows[row["annotator"]]
        for name in ("annotations", "agreement", "agreement_low", "kappa", "stated", "earned"):
            assert mine[name] == pytest.approx(row[name], abs=1e-4)
        for name in ("", "_low", "_high"):
            assert mine[f"reliability{name}"] == pytest.approx(row[f"learned{name}"], abs=1e-4)
        assert (mine["said"], mine["peers_say"]) == (row["said"], row["peers_say"])
    order = [row["reliability"] for row in summaries["three labels"]["annotators"]["rows"]]
    assert order == sorted(order, reverse=True)


def test_encodings_are_scored_as_compare_scores_them(summaries: dict[str, Any]):
    found = summaries["three labels"]["compared"]
    methods = [row["method"] for row in found["rows"]]
    assert "learned crowd" in methods
    assert "SLE, given reliability" not in methods
    expected = compare(CROWDS["three labels"], methods=methods, bootstrap=300).rows
    assert methods == [row["method"] for row in expected]
    for mine, row in zip(found["rows"], expected, strict=True):
        assert mine["votes"] == pytest.approx(row["votes"], abs=1e-4)
        assert mine["best"] == row["best"]
    assert "at least 10 items" in summaries["few items"]["compared"]["why_not"]


def test_a_large_crowd_is_compared_on_a_sample_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SUMMARISE, "MOST_COMPARED", 40)
    found = summarise(named_crowd(n=60))
    assert found["compared"]["sampled"]
    assert (found["compared"]["items"], found["compared"]["scored"]) == (13, 39)
    assert "a sample of 13 items" in render(found)


def test_a_large_crowd_has_no_refits_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("slencodings.report.people.MOST_REFITTED", 10)
    people = summarise(named_crowd())["annotators"]
    assert all(row["reliability_low"] is None for row in people["rows"])
    assert all(row["reliability"] is not None for row in people["rows"])
    assert any("intervals of agreement only" in note for note in people["notes"])


def test_what_is_next_is_what_triage_says():
    said = named_crowd(n=40, per=2)
    r = 0.5
    found = summarise(said, reliability=r, target=0.4, conflict=0.3)
    opinion = aggregate.sle(said, reliability=r)
    plan = triage.triage(
        opinion, said, reliability=r, uncertainty=float(np.median(said.uncertainty)), target=0.4,
        conflict=0.3,
    )  # fmt: skip
    few = [row for row in plan.to_rows() if row["why"] == "few"][:25]
    assert [row["item"] for row in found["next"]["few"]] == [row["item"] for row in few]
    assert [row["needed"] for row in found["next"]["few"]] == [row["needed"] for row in few]
    assert found["next"]["needed"] == int(plan.needed.sum())
    why = {kind: int(np.sum(plan.why == kind)) for kind in ("few", "conflict", "settled")}
    assert found["crowd"]["why"] == why
    assert [row["why"] for row in found["items"]["rows"]].count("few") == why["few"]
    sharp = [row["conflict"] for row in found["next"]["conflict"]]
    assert sharp == sorted(sharp, reverse=True)


def test_agreement_of_the_crowd_is_alpha(summaries: dict[str, Any]):
    alpha = aggregate.krippendorff_alpha(CROWDS["three labels"]).alpha
    found = summaries["three labels"]["crowd"]
    assert found["alpha"][0] == pytest.approx(alpha, abs=1e-4)
    assert found["alpha"][1] <= found["alpha"][0] <= found["alpha"][2]
    assert summaries["one annotation each"]["crowd"]["alpha"] is None
    assert sum(map(sum, found["uncertainties"].values())) == found["items"]


def test_sections_that_make_no_sense_say_why(summaries: dict[str, Any]):
    page = render(summaries["no names, one each"])
    assert NO_NAMES in page
    assert "nothing tells which labels are confused" in page
    assert "at least 10 items with two annotations or more; here are 0" in page
    assert "Nobody said how sure they were" in render(summaries["nobody said how sure"])
    assert "No item was annotated by two people" in render(summaries["one annotation each"])


def hostile() -> Annotations:
    """A crowd whose every name tries to be more than a name."""
    H = len(HOSTILE)
    said = named_crowd(n=H, per=4, people=H, labels=3)
    names = np.asarray(HOSTILE, dtype=object)
    return replace(said, items=names, annotators=names, labels=names[:3])


def test_what_comes_from_data_is_never_markup():
    found = summarise(hostile(), name=HOSTILE[1], made={"command": HOSTILE[3]})
    page = render(found)
    scripts = re.findall(r"<script[^>]*>", page)
    kind = '<script type="application/json" id="{}">'
    assert scripts == [kind.format("data"), kind.format("charts"), "<script>", "<script>"]
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    for text in data:
        assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(data[0])["labels"] == found["labels"]["names"]
    text = page.split('id="data"')[0]
    assert "<img" not in text
    assert text.count("<!--") == 0
    assert len(page) < 2_500_000


def test_the_policy_knows_the_scripts_and_lets_nothing_else_in():
    import base64
    import hashlib

    page = render(summarise(named_crowd(n=4)))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.findall(r"https?:", policy[1])
    for name in ("script", "style"):
        for body in re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[1]


@pytest.mark.parametrize("name", CROWDS)
def test_every_chart_can_be_drawn(summaries: dict[str, Any], name: str):
    vl_convert = pytest.importorskip("vl_convert")
    drawn = charts(summaries[name])
    assert "shares" in drawn
    assert ("triangle" in drawn) == (len(CROWDS[name].labels) in (2, 3))
    for spec in drawn.values():
        assert vl_convert.vegalite_to_vega(spec)["marks"]
