"""What a report says is what the library says, and nothing on its page comes alive."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crowds import named_crowd
from reporting import COMPARED, HOSTILE, hostile, quick, two_methods

from slencodings import aggregate, pairs_from_table, triage
from slencodings.aggregate.agreement import judgments
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators, judge
from slencodings.evaluation import compare
from slencodings.evaluation.text import lessons
from slencodings.report import render, render_pairs, summarise, summarise_pairs
from slencodings.report.charts import charts
from slencodings.report.items import are_pictures
from slencodings.report.labels import times_confused
from slencodings.report.people import NO_NAMES, NOT_SHARED, pair_agreement
from slencodings.report.without import without_each
from slencodings.tables.arrays import from_table
from slencodings.trust import count_each, learn_crowd, weigh

__all__ = ["two_methods"]

WELL_KNOWN = COMPARED.well_known


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


@pytest.fixture(scope="module")
def summaries() -> dict[str, Any]:
    """Of every crowd; one of them with all methods compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(COMPARED, "well_known", WELL_KNOWN)
        whole = summarise(CROWDS["three labels"], name="three labels")
        patch.setattr(COMPARED, "well_known", quick)
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


def assert_opinions(found: Any, said: Annotations, votes: Any, truth: Any) -> None:
    rows = opinions_of(found)
    assert len(rows) == len(said.items)
    for i, name in enumerate(said.items.tolist()):
        row = rows[str(name)]
        assert row["probability"] == pytest.approx(truth.probability[i].max(), abs=1e-9)
        assert truth.probability[i, row["label"]] == pytest.approx(row["probability"], abs=1e-9)
        assert row["uncertainty"] == pytest.approx(votes.uncertainty[i], abs=1e-9)
        most = votes.probability[i, row["people_say"]]
        assert most == pytest.approx(votes.probability[i].max(), abs=1e-9)
        for k, b in row["belief"]:
            assert b == pytest.approx(votes.belief[i, k], abs=1e-9)


@pytest.mark.parametrize("name", ["two labels", "ten labels", "no names", "soft labels"])
def test_votes_truth_and_conflict_are_those_of_the_learned_crowd(
    summaries: dict[str, Any], name: str
):
    said, found = CROWDS[name].completed(), summaries[name]
    crowd = learn_crowd(said, rng=0)
    assert_opinions(found, said, crowd.votes(said), crowd.truth(said))
    rows = opinions_of(found)
    for i, conflict in enumerate(crowd.conflict(said).tolist()):
        assert rows[str(said.items[i])]["conflict"] == pytest.approx(conflict, abs=1e-9)
    assert found["crowd"]["source"] == "learned"
    wrong = np.sum(1 - crowd.truth(said).probability.max(axis=1))
    assert found["crowd"]["wrong"] == pytest.approx(wrong)


def test_where_all_say_the_same_there_is_no_conflict(summaries: dict[str, Any]):
    said, rows = CROWDS["ten labels"], opinions_of(summaries["ten labels"])
    for i, name in enumerate(said.items.tolist()):
        several = len(set(said.y[said.item == i])) > 1
        assert (rows[name]["conflict"] > 0) == several


def test_opinions_with_given_reliability_are_those_of_sle():
    said = named_crowd()
    r = {name: 0.3 + 0.1 * m for m, name in enumerate(said.annotators.tolist())}
    found = summarise(said, reliability=r)
    opinion = aggregate.sle(said, reliability=r)
    rows = opinions_of(found)
    for i, name in enumerate(said.items.tolist()):
        assert rows[name]["uncertainty"] == pytest.approx(opinion.uncertainty[i])
        assert rows[name]["belief"][0][1] == pytest.approx(opinion.belief[i].max())
    given = {row["annotator"]: row["reliability"] for row in found["annotators"]["rows"]}
    assert given == pytest.approx(r)
    assert found["crowd"]["wrong"] is None


def test_where_nothing_can_be_learned_every_annotation_counts_the_same(summaries: dict[str, Any]):
    found, said = summaries["one annotation each"], CROWDS["one annotation each"]
    crowd = count_each(said)
    assert_opinions(found, said, crowd.votes(said), crowd.truth(said))
    assert found["crowd"]["source"] == "alike"
    assert found["annotators"]["why_not"] == NOT_SHARED
    assert all(row["above_chance"] is None for row in found["annotators"]["rows"])


@pytest.mark.parametrize("name", ["three labels", "soft labels", "somebody twice", "no names"])
@pytest.mark.parametrize("given", [True, False])
def test_without_an_annotator_is_what_refusing_their_rows_gives(name: str, given: bool):
    said = CROWDS[name].completed(np.linspace(0.2, 0.9, len(CROWDS[name].item)) if given else None)
    weighed = weigh(said)
    found = without_each(said, weighed)
    now = np.argmax(weighed.truth.probability, axis=1)
    who = said.annotator if name != "no names" else np.arange(len(said.item))
    for q in range(len(said.item)):
        keep = ~((said.item == said.item[q]) & (who == who[q]))
        left = said.rows(keep)
        evidence = weighed.crowd.evidence(left)
        evidence = evidence._replace(votes=left.sums(weighed.weight[keep]))
        u = weighed.crowd.votes_of(evidence).uncertainty[said.item[q]]
        P = weighed.crowd.truth_of(evidence).probability[said.item[q]]
        at = found.pair[q]
        assert found.probability[at] == pytest.approx(P.max(), abs=1e-9)
        assert found.uncertainty[at] == pytest.approx(u, abs=1e-9)
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


def test_annotators_are_those_of_the_roster_and_the_crowd(summaries: dict[str, Any]):
    said = CROWDS["three labels"].completed()
    roster = describe_annotators(said, estimates=["agreement", "kappa"], groups=0).to_rows()
    found = summaries["three labels"]["annotators"]["rows"]
    rows = {row["annotator"]: row for row in found}
    for row in roster:
        mine = rows[row["annotator"]]
        for name in ("annotations", "agreement", "agreement_low", "kappa", "stated", "earned"):
            assert mine[name] == pytest.approx(row[name], abs=1e-9)
        assert (mine["said"], mine["peers_say"]) == (row["said"], row["peers_say"])
    crowd = learn_crowd(said, rng=0)
    low, high = crowd.above_chance_interval()
    for m, name in enumerate(said.annotators.tolist()):
        assert rows[name]["accuracy"] == pytest.approx(crowd.accuracy[m])
        assert rows[name]["above_chance"] == pytest.approx(crowd.above_chance[m])
        assert rows[name]["above_chance_low"] == pytest.approx(low[m])
        assert rows[name]["above_chance_high"] == pytest.approx(high[m])
        assert crowd.model is not None
        share = rows[name]["confusion"]["share"]
        np.testing.assert_allclose(share, crowd.model.confusion[m], atol=0.005 + 1e-9)
    order = [row["above_chance"] for row in found]
    assert order == sorted(order)


def test_an_annotator_differs_most_where_the_label_they_gave_is_least_likely_true():
    said = named_crowd(n=40)
    found = summarise(said)
    P = weigh(said.completed()).truth.probability
    for row in found["annotators"]["rows"]:
        m = said.annotators.tolist().index(row["annotator"])
        own = np.flatnonzero(said.annotator == m)
        gap = P[said.item[own]].max(axis=1) - P[said.item[own], said.y[own]]
        worst = own[np.argsort(-gap, kind="stable")][: min(5, np.count_nonzero(gap > 1e-9))]
        assert [name for _, name, *_ in row["differs"]] == [said.items[i] for i in said.item[worst]]
        for at, name, label, *_ in row["differs"]:
            assert found["items"]["rows"][at]["item"] == name
            i = said.items.tolist().index(name)
            assert said.y[(said.item == i) & (said.annotator == m)] == [label]


def test_encodings_are_scored_as_compare_scores_them(summaries: dict[str, Any]):
    found = summaries["three labels"]["compared"]
    methods = [row["method"] for row in found["rows"]]
    assert "learned crowd" in methods
    assert "SLE, given reliability" not in methods
    expected = compare(CROWDS["three labels"], methods=methods)
    assert methods == [row["method"] for row in expected.rows]
    for mine, row in zip(found["rows"], expected.rows, strict=True):
        for name in ("votes", "votes_low", "votes_high", "best"):
            assert mine[name] == row[name], (row["method"], name)
    assert found["lessons"] == lessons(expected.rows)
    assert "at least 10 items" in summaries["few items"]["compared"]["why_not"]


@pytest.mark.parametrize("seed", range(3))
def test_a_small_crowd_with_single_votes_has_the_verdict_of_compare(seed: int):
    said = named_crowd(n=30)
    said = said.rows(np.flatnonzero((said.item % 3 > 0) | (said.annotator == said.annotator[0])))
    assert np.any(np.bincount(said.item) == 1)
    found = summarise(said, seed=seed)["compared"]
    expected = compare(said, methods=quick(said), seed=seed)
    assert found["lessons"] == lessons(expected.rows)
    assert (found["items"], found["scored"]) == (len(said.items), expected.about.scored)
    assert [row["votes"] for row in found["rows"]] == [row["votes"] for row in expected.rows]


def test_what_people_know_by_name_has_one_count_each():
    assert "SLE, one count each" in WELL_KNOWN(named_crowd())


def test_a_large_crowd_is_compared_on_a_sample_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(COMPARED, "MOST_COMPARED", 40)
    said = named_crowd(n=60)
    found = summarise(said)
    expected = compare(said, methods=quick(said), max_annotations=40)
    assert found["compared"]["sampled"]
    assert found["compared"]["scored"] == expected.about.scored < 180
    assert found["compared"]["lessons"] == lessons(expected.rows)
    page = render(found)
    assert f"here {expected.about.scored} annotations, a sample, of 60 items" in page
    assert "Raise --max-annotations of sle compare to compare on more" in page
    assert not summarise(named_crowd(n=13))["compared"]["sampled"]


def test_what_is_open_is_what_triage_says_and_why():
    said = named_crowd(n=40, per=2).completed()
    weighed = weigh(said)
    found = summarise(said, least_probability=0.85, conflict=0.3)
    state = triage.status(weighed, least_probability=0.85, conflict=0.3)
    why = dict(
        zip(
            said.items.tolist(),
            triage.reasons(said, weighed, state, least_probability=0.85),
            strict=True,
        )
    )
    counts = {kind: int(np.sum(state == kind)) for kind in ("few", "conflict", "settled")}
    assert found["crowd"]["why"] == counts
    assert min(counts.values()) > 0
    rows = found["items"]["rows"]
    for row in rows:
        assert row["why"] == state[said.items.tolist().index(row["item"])]
        assert row["reason"] == why[row["item"]]
    few = [rows[row["row"]] for row in found["next"]["few"]]
    assert {row["why"] for row in few} == {"few"}
    plan = triage.triage(said, weighed=weighed, least_probability=0.85, conflict=0.3)
    order = [row["item"] for row in plan.to_rows() if row["status"] == "few"]
    assert [row["item"] for row in few] == order[: len(few)]
    assert found["next"]["plan"] == plan.summary().splitlines()[1:]
    assert plan.summary().splitlines()[2] in render(found).replace("&gt;", ">")
    split = [rows[row["row"]] for row in found["next"]["conflict"]]
    assert {row["why"] for row in split} == {"conflict"}
    sharp = [row["conflict"] for row in split]
    assert sharp == sorted(sharp, reverse=True)


def with_spammers(n: int = 80) -> Annotations:
    """Six people who are mostly right, and two who always say the first label."""
    said = named_crowd(n=n, per=5, people=8, labels=2)
    return replace(said, y=np.where(said.annotator >= 6, 0, said.y))


def test_whoever_is_at_chance_comes_first_is_named_in_the_opening_and_is_not_asked():
    said = with_spammers()
    found = summarise(said, least_votes=6)
    people = found["annotators"]["rows"]
    judged = judge(said, learn_crowd(said.completed(), rng=0))
    verdicts = {row["annotator"]: row["verdict"] for row in people}
    assert verdicts == {
        name: one.verdict for name, one in zip(said.annotators.tolist(), judged, strict=True)
    }
    poor = {name for name, verdict in verdicts.items() if verdict == "at chance"}
    assert poor == {"person 6", "person 7"}
    assert {row["annotator"] for row in people[:2]} == poor
    asked = {name for row in found["next"]["few"] for name in row["ask"]}
    assert asked
    assert not asked & poor
    page = render(found)
    opening = page[page.index('<ol class="opening">') : page.index("</ol>")]
    assert opening.count("<li>") == 3
    assert 'href="#items-settled"' in opening
    assert 'Look at <a href="#annotators-look">2 of 8 annotators</a>' in opening
    assert 'href="#annotator-0"' in opening
    assert 'href="#annotator-1"' in opening
    assert opening.count(" (at chance)") == 2
    people[0]["verdict"] = people[1]["verdict"] = "look at"
    assert "(look at)" not in render(found)
    assert re.search(r'<a href="#next">Annotate \d+ items</a> with too few opinions', opening)


def test_labels_and_annotators_that_are_numbers_are_no_quantities():
    numbers = {"labels": np.arange(1, 4), "annotators": np.arange(10, 16)}
    page = render(summarise(replace(named_crowd(n=40), **numbers), least_votes=6))
    for head in ("and", "Ask any of"):
        cells = re.findall(rf'<td[^>]*data-head="{head}"[^>]*>', page)
        assert len(cells) >= 3
        assert not any('class="n"' in cell for cell in cells)
    assert re.search(r'<td class="n" data-head="Times">', page)


def test_names_with_commas_are_quoted_where_several_are_listed():
    said = with_spammers()
    names = [f"ann {m}" if m % 2 else f"Bob, Jr. {m}" for m in range(7)]
    said = replace(said, annotators=np.asarray([*names, "=cmd()"], dtype=object))
    page = render(summarise(said, least_votes=6))
    opening = page[page.index('<ol class="opening">') : page.index("</ol>")]
    assert ">'Bob, Jr. 6'</bdi></a> (at chance)" in opening
    assert ">=cmd()</bdi></a> (at chance)" in opening
    asked = page[page.index("Ask any of") : page.index("sle triage --budget")]
    assert re.search(r"ann \d, 'Bob, Jr\. \d'|'Bob, Jr\. \d', ann \d", asked)
    assert not re.search(r"(?<!')Bob, Jr", opening + asked)
    seldom = np.flatnonzero(said.annotator == 2)[3:]
    roster = describe_annotators(said.rows(np.setdiff1d(np.arange(len(said.item)), seldom)))
    assert any("('Bob, Jr. 2')" in note for note in roster.notes)


def test_judges_with_commas_are_quoted_where_several_are_listed():
    judges = ["Bob, Jr.", "=cmd()"] * 8
    games = {"left": list("abcd" * 4), "right": list("bcda" * 4), "won": list("abcabcda" * 2)}
    pairs = pairs_from_table(
        games | {"who": judges}, left="left", right="right", winner="won", annotator="who"
    )
    page = render_pairs(summarise_pairs(pairs))
    assert re.search(r"'Bob, Jr\.', =cmd\(\)|=cmd\(\), 'Bob, Jr\.'", page)


def test_the_opening_says_what_there_is_to_say(summaries: dict[str, Any]):
    page = render(summaries["one annotation each"])
    assert "Nobody can be told apart</a>: No item was annotated by two people" in page
    assert "Nobody can be told apart</a>: No column says who annotated" in render(
        summaries["no names"]
    )
    given = render(summarise(named_crowd(n=4), reliability=0.9, least_votes=1, conflict=1))
    assert "count by the reliability that came with the data, which is not questioned" in given
    assert "Nothing is open</a>: every item is settled." in render(
        summarise(named_crowd(n=12, labels=1))
    )


VOTES_ONLY = {
    "given": (named_crowd(n=12), "Who is right was not asked, as annotations count by the reliab"),
    "alike": (named_crowd(per=1), "Who is right could not be learned, as no item has two annotat"),
    "learned": (named_crowd(labels=101, n=101, per=2), "of 101 labels is true is too much to lear"),
}


@pytest.mark.parametrize("source", VOTES_ONLY)
def test_where_who_is_right_was_not_learned_no_number_is_called_that_of_the_truth(source: str):
    said, why_not = VOTES_ONLY[source]
    gold = {said.items[0]: said.labels[0]}
    found = summarise(said, reliability=0.6 if source == "given" else None, gold=gold)
    assert (found["crowd"]["source"], found["crowd"]["truth"]) == (source, False)
    page = render(found)
    parts = re.split(r"<script[^>]*>|</script>", page)
    # The page's own script has words for every crowd; the charts are data.
    shown = " ".join([*parts[::2], *(x for x in parts if x.startswith("{")), str(charts(found))])
    assert why_not in shown
    true = re.findall(r"[^.:]*(?:likel\w*|labels? (?:is|are)|to be) true[^.]*", shown)
    assert [text for text in true if "too much to learn" not in text] == []
    for words in (
        "Likeliest vote", "How probable the likeliest votes are", "more likely to be the next vote",
        "probability that the likeliest vote is the next one", "of all items: likeliest vote",
        "nothing of what is true", "so it need not be true", "the likeliest vote is right for",
    ):  # fmt: skip
        assert words in shown, words
    assert "takes itself to be right" not in shown
    learned = render(summarise(named_crowd(n=12)))
    assert "How probably the labels are true" in learned
    assert "Likeliest vote" not in "".join(re.split(r"<script[^>]*>|</script>", learned)[::2])


def test_a_chart_of_reliability_that_came_does_not_say_who_is_right():
    page = render(summarise(named_crowd(n=12), reliability=np.linspace(0.2, 0.9, 36)))
    assert "The reliability that came with the data" in page
    assert "How often people are" not in page


def test_gold_scores_what_is_likely_true():
    said = named_crowd(n=40)
    truth = {name: said.labels[i % 3] for i, name in enumerate(said.items.tolist()[:30])}
    found = summarise(said, gold=truth)
    scored = found["crowd"]["scored"]
    assert scored is not None
    P = weigh(said.completed()).truth.probability[:30]
    gold = np.arange(30) % 3
    assert scored["items"] == 30
    assert scored["right"] == pytest.approx(np.mean(P.argmax(axis=1) == gold))
    assert scored["right_low"] < scored["right"] < scored["right_high"]
    assert scored["log_loss"] == pytest.approx(-np.mean(np.log(P[np.arange(30), gold])))
    assert scored["sure"] == pytest.approx(P.max(axis=1).mean())
    rows = opinions_of(found)
    assert [rows[name]["gold"] for name in said.items[:30]] == gold.tolist()
    assert {rows[name]["gold"] for name in said.items[30:]} == {None}
    page = render(found)
    assert f"is right for {scored['right']:.1%} of them" in page
    assert f"{scored['log_loss'] or 0:.3f}" in page
    assert summarise(said)["crowd"]["scored"] is None


def test_items_have_their_text_and_fields_and_pictures_come_only_from_where_they_are():
    said = named_crowd(n=4)
    fields = {
        "source": ["https://a.org/x", None, "b", 3],
        "picture": ["https://cdn.example.org:8080/a.png?size=2", "pictures/b c.JPG", None, "d.gif"],
    }
    text = ["<b>one</b>", None, "x" * 1000, "\ud800"]
    found = summarise(said, text=("words", text), fields=fields)
    rows = opinions_of(found)
    assert rows["item 0"]["text"] == "<b>one</b>"
    assert rows["item 1"]["text"] is None
    assert rows["item 2"]["text"] == "x" * 499 + "…"
    assert rows["item 3"]["fields"] == ["3", "d.gif"]
    assert found["items"]["pictures"] == ["picture"]
    page = render(found)
    assert "img-src https://cdn.example.org:8080 file:;" in page
    assert "but its pictures, from https://cdn.example.org:8080, files beside it." in page
    assert "<b>one" not in page
    assert "img-src" not in render(summarise(said, text=("words", text)))
    for address in ("javascript:x.png", "//host/a.png", "\\\\host\\a.png", "https://a.org/page"):
        assert not are_pictures([address])


def test_agreement_of_the_crowd_is_alpha(summaries: dict[str, Any]):
    alpha = aggregate.krippendorff_alpha(CROWDS["three labels"]).alpha
    found = summaries["three labels"]["crowd"]
    assert found["alpha"][0] == pytest.approx(alpha, abs=1e-4)
    assert found["alpha"][1] <= found["alpha"][0] <= found["alpha"][2]
    assert summaries["one annotation each"]["crowd"]["alpha"] is None
    for name in ("doubts", "probabilities"):
        assert sum(map(sum, found[name]["items"].values())) == found["items"]


def test_sections_that_make_no_sense_say_why(summaries: dict[str, Any]):
    page = render(summaries["no names, one each"])
    assert NO_NAMES in page
    assert "nothing tells which labels are confused" in page
    assert "at least 10 items with two annotations or more; here are 0" in page
    assert "Nobody said how sure they were" in render(summaries["nobody said how sure"])
    assert "Nobody said how sure" not in render(summaries["three labels"])
    scale = replace(named_crowd(), stated=np.tile([1.0, 2.0, 5.0], 24))
    assert "from 1 to 5" in (page := render(summarise(scale)))
    assert "--confidence-scale 1-5" in page
    assert "No item was annotated by two people" in render(summaries["one annotation each"])


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
