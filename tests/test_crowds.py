"""Whole crowds from files: what is read, and the verbs that look at them."""

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from flat import read_crowd
from strategies import present

from slencodings.trust import weigh

CROWD = """\
post,worker,answer,sure,trust,expert,p_no,p_yes
p1,ann,yes,4,0.9,yes,0.2,0.8
p1,bob,yes,2,0.6,yes,0.2,0.8
p1,cy,no,1,0.7,yes,0.2,0.8
p2,ann,no,3,0.9,no,1.0,0.0
p2,bob,no,0,0.6,no,1.0,0.0
p3,cy,yes,4,0.7,,0.5,0.5
"""
ROLES = {"confidence": "sure", "reliability": "trust"}


@pytest.fixture
def here(here):
    (here / "crowd.csv").write_text(CROWD)
    return here


def notes():
    told = []
    return told, lambda what, text: told.append(f"{what} {text}")


def test_confidence_outside_0_to_1_is_kept_as_stated_and_not_taken_at_its_word(here):
    told, say = notes()
    crowd = read_crowd("crowd.csv", columns=ROLES, say=say)
    assert crowd.annotations.items.tolist() == ["p1", "p2", "p3"]
    assert crowd.annotations.uncertainty.tolist() == [0] * 6
    assert present(crowd.annotations.stated).tolist() == [4, 2, 1, 3, 0, 4]
    assert present(crowd.annotations.reliability).tolist() == [0.9, 0.6, 0.7, 0.9, 0.6, 0.7]
    assert crowd.truth is None
    scale = "such as confidence_scale=(0, 4), also take it at its word"
    assert any(scale in text for text in told)
    assert "read crowd.csv: 6 annotations of 3 items by 3 annotators, 2 labels" in told


def test_a_scale_gives_uncertainty_too(here):
    crowd = read_crowd("crowd.csv", columns=ROLES, confidence_scale=(0, 4))
    np.testing.assert_allclose(crowd.annotations.uncertainty, [0, 0.5, 0.75, 0.25, 1, 0])
    assert present(crowd.annotations.stated).tolist() == [4, 2, 1, 3, 0, 4]


def test_uncertainty_is_taken_as_it_is(here):
    (here / "u.csv").write_text("item,label,annotator,uncertainty\na,x,m,0.25\na,y,n,1\n")
    crowd = read_crowd("u.csv", columns={})
    assert crowd.annotations.uncertainty.tolist() == [0.25, 1]
    assert crowd.annotations.stated is None


def test_numbers_in_0_to_1_are_taken_at_their_word(here):
    (here / "c.csv").write_text("item,label,confidence\na,x,0.25\na,y,1\n")
    crowd = read_crowd("c.csv", columns={})
    assert crowd.annotations.uncertainty.tolist() == [0.75, 0]
    assert crowd.annotations.reliability is None


@pytest.mark.parametrize(
    ("gold", "truth"),
    [
        ("expert", [[0, 1], [1, 0], [math.nan, math.nan]]),
        ("p_no,p_yes", [[0.2, 0.8], [1, 0], [0.5, 0.5]]),
        ("gold.csv", [[0, 1], [0.5, 0.5], [math.nan, math.nan]]),
        ("gold.jsonl", [[math.nan, math.nan], [1, 0], [math.nan, math.nan]]),
    ],
)
def test_gold_is_a_column_columns_or_a_file(here, gold, truth):
    (here / "gold.csv").write_text("item,label\np1,yes\np2,no\np2,yes\nelsewhere,no\n")
    (here / "gold.jsonl").write_text('{"item": "p2", "label": "no"}\n')
    crowd = read_crowd("crowd.csv", columns=ROLES, gold=gold)
    np.testing.assert_array_equal(crowd.truth, truth)


def test_gold_that_makes_no_sense_is_told(here):
    (here / "other.csv").write_text("item,label\np1,maybe\n")
    cases = {
        "worker": "must say the same in all rows of an item; of 2 items there are several",
        "p_no": "labels that nobody gave, first '0.2'",
        "p_no,p_yes,trust": "needs a column for each of the 2 labels, in their order; 3 came",
        "missing.csv": "must be a column, columns with commas, or a file; 'missing.csv' came",
        "other.csv": r"1 label that nobody gave, first 'maybe'.*labels=\[...\]",
    }
    for gold, words in cases.items():
        with pytest.raises(ValueError, match=words):
            read_crowd("crowd.csv", columns=ROLES, gold=gold)


def test_rows_without_numbers_are_an_error_or_dropped(here):
    (here / "gaps.csv").write_text(CROWD.replace("bob,yes,2", "bob,yes,"))
    with pytest.raises(ValueError, match="missing"):
        read_crowd("gaps.csv", columns=ROLES)
    told, say = notes()
    crowd = read_crowd("gaps.csv", columns=ROLES, missing="drop", say=say)
    assert len(crowd.annotations.item) == 5
    assert "note 1 row without sure or trust or annotator left out (missing='drop')" in told


@pytest.mark.parametrize(
    ("levels", "scale"),
    [("25", "1-5"), ("26", "1-7"), ("03", "0-4"), (("30", "80"), "0-100"), (("-3", "3"), "-3-3")],
)
def test_a_scale_of_confidence_is_named_by_ends_that_are_usual(sle, tmp_path, levels, scale):
    low, high = levels
    lines = [f"{i},{who},{'xy'[i % 2]},{low}" for i in range(6) for who in "ab"]
    lines = ["item,annotator,label,sure", *lines, f"0,c,x,{high}"]
    (tmp_path / "scaled.csv").write_text("\n".join(lines))
    _, out, err = sle("reliability", "scaled.csv", "--confidence", "sure")
    assert f"as people were shown it, such as --confidence-scale {scale}, also take it at" in err
    assert "Name the ends of its scale by --confidence-scale, such as 1-5." in out
    assert sle("reliability", "scaled.csv", "--confidence-scale", scale).code == 0


def test_rows_without_annotator_that_are_dropped_are_told_and_their_items_stay(here):
    (here / "gaps.csv").write_text(CROWD.replace("bob,yes,2", ",yes,2").replace("ann,no,3", ",no,"))
    told, say = notes()
    found = read_crowd("gaps.csv", columns=ROLES, missing="drop", say=say).annotations
    dropped = len(read_crowd("crowd.csv", columns=ROLES).annotations.item) - len(found.item)
    assert dropped == 2
    assert "note 2 rows without sure or trust or annotator left out (missing='drop')" in told
    assert len(found.items) == 3


def test_weighing_uses_what_the_file_tells_or_learns_it(here):
    given = read_crowd("crowd.csv", columns=ROLES).annotations
    weighed = weigh(given)
    np.testing.assert_allclose(weighed.reliability, [0.9, 0.6, 0.7])
    assert weighed.source == "given"
    assert weighed.votes.uncertainty.shape == (3,)
    weighed = weigh(replace(given, reliability=None))
    assert weighed.source == "learned"
    assert np.all((weighed.reliability >= 0) & (weighed.reliability <= 1))
    assert weighed.votes.uncertainty.shape == (3,)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A small part of the embedded crowd as a file."""
    from slencodings.datasets import crowd_table, digits_crowd

    crowd = digits_crowd(rng=0)
    path = tmp_path_factory.mktemp("crowd") / "digits.csv"
    table = crowd_table(crowd.annotations, crowd.reliability)
    gold = dict(zip(crowd.annotations.items.tolist(), crowd.gold.tolist(), strict=True))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*table, "gold"])
        for row in zip(*(column.tolist() for column in table.values()), strict=True):
            if row[0] < "digit-0150":
                writer.writerow([*row, gold[row[0]]])
    return path


def test_sle_compare_shows_a_table_and_what_it_says(sle, digits):
    how = ["--gold", "gold", "--bootstrap", 20, "--method", "majority vote", "--method"]
    code, out, err = sle("compare", digits, *how, "sle, KAPPA")
    assert code == 0
    assert "columns  item = item, annotator = annotator, label = label" in err
    assert "150 items" in out
    assert "5 folds, 20 resamples of items, seed 0" in out
    header = next(line for line in out.splitlines() if line.startswith("method"))
    assert {"votes", "direct", "accuracy"} <= set(header.split())
    assert "majority vote" in out
    assert "Right most often" in out


def test_sle_compare_writes_all_columns(sle, digits, tmp_path):
    how = ["--bootstrap", 20, "--method", "majority vote", "--seed", 3, "-q", "-o"]
    for name in ("rows.csv", "rows.tsv", "rows.json", "rows.jsonl"):
        code, out, err = sle("compare", digits, *how, tmp_path / name)
        assert (code, out, err) == (0, "", "")
    whole = json.loads((tmp_path / "rows.json").read_text())
    assert whole["about"]["seed"] == 3
    assert whole["about"]["notes"] == []
    (row,) = whole["rows"]
    assert row["direct"] == "inf"
    assert float(row["direct"]) == math.inf
    assert json.loads((tmp_path / "rows.jsonl").read_text()).keys() == row.keys()
    for name, delimiter in (("rows.csv", ","), ("rows.tsv", "\t")):
        with (tmp_path / name).open() as file:
            (read,) = csv.DictReader(file, delimiter=delimiter)
        assert float(read["votes"]) == row["votes"]
    code, out, _ = sle("compare", digits, *how, "-")
    assert out.splitlines()[0] == (tmp_path / "rows.csv").read_text().splitlines()[0]


def test_sle_reliability_shows_and_writes_every_annotator(sle, digits, tmp_path):
    code, out, err = sle("reliability", digits)
    assert code == 0
    assert "Whom to trust (50 in all" in out
    assert "Whether confidence is earned" in out
    assert "--reliability reliability uses it" in err
    target = tmp_path / "whom.json"
    code, _, err = sle("reliability", digits, "--all", "--groups", 0, "-o", target)
    assert code == 0
    assert f"{target}: 50 rows" in err
    whole = json.loads(target.read_text())
    rows = whole["rows"]
    assert len(rows) == 50
    assert sum(row["annotations"] for row in rows) == 750
    assert {"verdict", "reason", "above_chance", "worth_for_votes", "mace"} <= rows[0].keys()
    assert sum(level["annotations"] for level in whole["about"]["levels"]) == 750


def test_a_scale_of_confidence_reaches_reliability_and_missing_rows_are_dropped(sle, tmp_path):
    path = tmp_path / "scaled.csv"
    lines = ["item,annotator,label,confidence"]
    for i in range(12):
        lines += [f"{i},{who},{'xy'[(i + (who == 'c')) % 2]},{1 + i % 5}" for who in "abc"]
    path.write_text("\n".join([*lines, "12,a,x,"]))
    code, out, err = sle("reliability", path, "--confidence-scale", "1-5", "--missing", "drop")
    assert code == 0
    assert "1 row without confidence or annotator left out" in err
    assert "earned" in out
    assert "not on [0, 1]" not in out
    for verb in ("compare", "triage"):
        how = ["--method", "soft votes", "--bootstrap", 0] if verb == "compare" else []
        code, _, _ = sle(verb, path, "--confidence-scale", "1-5", "--missing", "drop", *how)
        assert code == 0


def test_answers_that_are_repeated_are_told_of_by_every_verb(sle, tmp_path):
    path = tmp_path / "twice.csv"
    rows = [f"{i},{who},{'xy'[i % 2]}" for i in range(6) for who in "ab"]
    path.write_text("\n".join(["item,annotator,label", *rows, "0,a,y"]))
    told = "1 annotation more of an (item, annotator) pair that has one; --duplicates"
    for verb in ("reliability", "triage", "compare"):
        how = ["--method", "soft votes", "--bootstrap", 0] if verb == "compare" else []
        code, _, err = sle(verb, path, *how)
        assert code == 0
        assert told in err
    _, _, err = sle("triage", path, "--duplicates", "first")
    assert told not in err


def test_sle_triage_says_what_to_annotate_next(sle, digits, tmp_path):
    code, out, err = sle("triage", digits, "--budget", 7, "--limit", 2, "--least-votes", 3)
    assert code == 0
    assert "7 annotations of " in out
    assert ": expected errors " in out
    assert "The next 100 are expected to mend" in out
    assert "nan" not in out
    assert len(out.split("\n\n")[1].splitlines()) == 3
    items = int(re.findall(r"7 annotations of (\d+) items", out)[0])
    assert items > 2
    assert f"\n\n{items - 2} more planned; -o plan.csv has them all, --limit shows more." in out
    assert "--reliability reliability uses it" in err
    target = tmp_path / "next.csv"
    sle("triage", digits, "--budget", 7, "-o", target)
    with target.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    assert sum(int(row["planned"]) for row in rows) == 7
    assert sum(len(json.loads(row["annotators"])) for row in rows) == 7


def test_sle_triage_asks_for_what_the_money_pays(sle, digits, tmp_path):
    names = {line.split(",")[1] for line in digits.read_text().splitlines()[1:]}
    prices = tmp_path / "prices.csv"
    prices.write_text("\n".join(["worker,price", *(f"{name},0.5" for name in sorted(names))]))
    target = tmp_path / "next.json"
    code, _, _ = sle("triage", digits, "--budget", 3, "--costs", prices, "-o", target)
    assert code == 0
    about = json.loads(target.read_text())["about"]
    assert about["spent"] == 3
    assert about["errors_after"] < about["errors"]
    prices.write_text("who,euros\nann,1\n")
    code, _, err = sle("triage", digits, "--costs", prices)
    assert code == 1
    assert "--costs must be a table with the columns annotator and cost" in err
    prices.write_text("annotator,cost\nann-01,1\nann-01,2\n")
    code, _, err = sle("triage", digits, "--costs", prices)
    assert code == 1
    assert "--costs must name each annotator once, with a cost; 2 rows came for 1 annotator" in err


def test_where_every_item_has_one_annotation_each_is_one_count(sle, tmp_path):
    path = tmp_path / "alone.csv"
    path.write_text("item,annotator,label,uncertainty\np,ann,x,0.5\nq,bob,y,0.9\n")
    code, out, err = sle("triage", path)
    assert code == 0
    assert "no item has two annotations to learn from; each annotation is one count" in err
    assert "2 items: 0 settled, 2 with too few opinions, 0 in conflict." in out
    assert "wrong is what the next person would not say" in out
    assert "nan" not in out


def test_wrong_use_of_the_verbs_is_told(sle, digits, tmp_path):
    code, _, err = sle("compare", digits, "-o", "rows.docx")
    assert code == 1
    assert "chooses its format: .csv, .tsv, .json, .jsonl or .xlsx; 'rows.docx' came" in err
    code, _, err = sle("compare", digits, "--method", "votes")
    assert code == 1
    assert "--method must be some of 'majority vote'" in err
    code, _, err = sle("triage", digits, "--least-probability", 0)
    assert code == 1
    assert "--least-probability must lie above 0 and at most at 1; 0.0 came" in err
    code, _, err = sle("triage", digits, "--budget", -1)
    assert code == 1
    assert "--budget must be a number of at least 0; -1.0 came" in err
    code, _, err = sle("reliability", digits, "--scored", "nobody")
    assert code == 1
    assert "--scored must name annotators" in err
    code, _, err = sle("compare", digits, "--confidence-scale", "calibrated")
    assert code == 2
    nobody = tmp_path / "nobody.csv"
    nobody.write_text("item,label\na,x\na,y\n")
    code, _, err = sle("reliability", nobody)
    assert code == 1
    assert "--annotator" in err
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    code, _, err = sle("reliability", nobody, "-o", kept)
    assert kept.read_text() == "old"


def test_hostile_names_are_shown_as_they_are(sle, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("item,annotator,label\n[red]x[/],a,[b]\n[red]x[/],b,[b]\n:),a,c\n:),b,c\n")
    code, out, _ = sle("triage", path)
    assert code == 0
    assert "[red]x[/]" in out
