"""Real crowds from local folders: the counts and quirks that their SOURCE.txt lists."""

import csv
import gzip
import json
from collections import Counter
from functools import cache
from zipfile import ZipFile

import numpy as np
import pytest

from slencodings.datasets import local
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.mre import mre
from slencodings.datasets.rte import rte
from slencodings.datasets.uds_factuality import uds_factuality

LOADERS = {
    "rte": rte,
    "uds_factuality": uds_factuality,
    "cifar10s": cifar10s,
    "convabuse": convabuse,
    "mre": mre,
}


@cache
def loaded(name, **how):
    return LOADERS[name](**how)


def real(name, **how):
    try:
        return loaded(name, **how)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def per_item(crowd):
    n = np.bincount(crowd.annotations.item, minlength=len(crowd.annotations.items))
    return dict(sorted(Counter(n.tolist()).items()))


def repeats(crowd):
    """(item, annotator) pairs that occur more than once, and how often."""
    said = crowd.annotations
    pairs = Counter(zip(said.item.tolist(), said.annotator.tolist(), strict=True))
    return Counter(n for n in pairs.values() if n > 1)


def votes_of(crowd):
    return crowd.annotations.sums()


def write_rows(path, rows, delimiter=","):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


# Where the files are


def test_the_folder_given_is_the_only_one_looked_in(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"'rte' needs the file .* {tmp_path}\. Pass"):
        rte(tmp_path)


def test_the_environment_comes_before_the_folder_beside_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("SLENCODINGS_DATA", str(tmp_path))
    (tmp_path / "uds_confidence").mkdir()
    (tmp_path / "uds_confidence" / "file").touch()
    found = local.find("uds_factuality", None, "file", shared="uds_confidence")
    assert found == tmp_path / "uds_confidence"
    with pytest.raises(FileNotFoundError, match="other") as error:
        local.find("uds_factuality", None, "other", shared="uds_confidence")
    for place in ("uds_factuality", "uds_confidence"):
        assert str(tmp_path / place) in str(error.value)
        assert str(local.Path("shared") / "datasets" / place) in str(error.value)


@pytest.mark.parametrize("name", LOADERS)
def test_codes_point_at_names_and_every_item_has_its_features(name):
    crowd = real(name)
    said = crowd.annotations
    N, M, K = len(said.items), len(said.annotators), len(said.labels)
    assert len(crowd.X) == N == len(set(said.items.tolist()))
    assert len(set(said.annotators.tolist())) == M
    assert np.array_equal(np.unique(said.item), np.arange(N))
    assert np.array_equal(np.unique(said.annotator), np.arange(M))
    assert said.y.shape[1:] == ((K,) if said.soft else ())
    assert len(said.y) == len(said.item) == len(said.annotator) == len(said.uncertainty)
    assert crowd.gold is None or (crowd.gold.shape == (N,) and set(crowd.gold) <= set(range(K)))


# RTE


def test_rte_has_the_counts_of_its_source():
    crowd = real("rte")
    said = crowd.annotations
    assert (len(crowd.X), len(said.y), len(said.annotators)) == (800, 8000, 164)
    assert per_item(crowd) == {10: 800}
    assert not repeats(crowd)
    by_annotator = np.bincount(said.annotator)
    assert (by_annotator.min(), by_annotator.max(), np.median(by_annotator)) == (20, 800, 20)
    assert np.bincount(said.y).tolist() == [3419, 4581]
    assert np.bincount(crowd.gold).tolist() == [400, 400]
    votes = votes_of(crowd)
    tie, right = votes[:, 0] == votes[:, 1], votes.argmax(axis=1) == crowd.gold
    assert tie.sum() == 65
    assert (votes.max(axis=1) == 10).sum() == 78
    assert right[~tie].mean() == pytest.approx(0.932, abs=5e-4)
    assert np.where(tie, 0.5, right).mean() == pytest.approx(0.897, abs=5e-4)


def test_rte_texts_have_no_html_entities_and_keep_their_quotation_marks(tmp_path):
    quoted = {"id": "7", "value": "TRUE", "task": "CD", "text": '"A" &amp; &quot;B&quot;'}
    votes = [
        {"!amt_annotation_ids": "x", "!amt_worker_ids": w, "orig_id": i, "response": r, "gold": "1"}
        for w, i, r in [("w", "10", "0"), ("v", "7", "1"), ("w", "7", "1")]
    ]
    write_rows(tmp_path / "all_collected_data" / "rte.standardized.tsv", votes, "\t")
    lines = ["\t".join([*quoted, "hypothesis"])]
    lines += ["\t".join([*quoted.values(), "it&apos;s"])]
    lines += ["10\tFALSE\tCD\tplain\tplain"]
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "rte1.tsv").write_text("\n".join(lines))
    crowd = rte(tmp_path)
    assert crowd.X == [('"A" & "B"', "it's"), ("plain", "plain")]
    assert crowd.annotations.items.tolist() == ["7", "10"]
    assert crowd.annotations.item.tolist() == [1, 0, 0]


def test_no_html_entity_is_left_in_the_real_texts():
    assert not [pair for pair in real("rte").X if "&quot;" in "".join(pair)]


# UDS factuality


def test_uds_factuality_has_the_counts_of_its_source():
    crowd = real("uds_factuality")
    said = crowd.annotations
    assert (len(crowd.X), len(said.y), len(said.annotators)) == (27403, 52886, 47)
    assert per_item(crowd) == {1: 1920, 2: 25483}
    assert Counter(crowd.split.tolist()) == {"train": 22209, "dev": 2646, "test": 2548}
    assert np.bincount(said.y).tolist() == [18764, 34122]
    assert np.bincount(crowd.stated).tolist() == [72, 1913, 12095, 9497, 29309]
    assert np.array_equal(said.uncertainty, 1 - crowd.stated / 4)
    assert crowd.gold is None
    assert (votes_of(crowd) == 1).all(axis=1).sum() == 4531


def test_the_other_annotator_of_uds_agrees_more_with_those_who_are_sure():
    crowd = real("uds_factuality")
    said = crowd.annotations
    paired = (np.bincount(said.item) == 2)[said.item]
    agrees = votes_of(crowd)[said.item, said.y] == 2
    shares = [agrees[paired & (crowd.stated == level)].mean() for level in range(5)]
    assert np.allclose(shares, [0.49, 0.58, 0.75, 0.83, 0.87], atol=6e-3)


def test_uds_predicates_are_words_of_their_sentences_but_for_three():
    crowd = real("uds_factuality")
    assert crowd.X[0] == ("From the AP comes this story :", "comes")
    assert sum(word == "" for sentence, word in crowd.X if sentence) == 3


def test_a_uds_sentence_that_is_not_there_leaves_its_text_empty(tmp_path):
    factual = {"value": {"a": 1, "b": 0}, "confidence": {"a": 4, "b": 1}}
    said = {"factuality": {"factual": factual}}
    data = {
        "ewt-dev-1": {"ewt-dev-1-semantics-pred-9": said},
        "ewt-train-2": {"ewt-train-2-semantics-pred-1": said},
    }
    path = tmp_path / "raw" / "sentence" / "annotations" / "factuality.zip"
    path.parent.mkdir(parents=True)
    with ZipFile(path, "w") as archive:
        archive.writestr("factuality.json", json.dumps({"metadata": {}, "data": data}))
    with gzip.open(tmp_path / "derived_ewt_text.json.gz", "wt") as file:
        json.dump({"ewt-dev-1": {"text": "It rains.", "tokens": ["It", "rains", "."]}}, file)
    crowd = uds_factuality(tmp_path)
    assert crowd.X == [("It rains.", ""), ("", "")]
    assert crowd.split.tolist() == ["dev", "train"]
    assert crowd.annotations.uncertainty.tolist() == [0, 0.75, 0, 0.75]


# CIFAR-10S


def test_cifar10s_has_the_counts_of_its_source():
    crowd = real("cifar10s")
    said = crowd.annotations
    assert (len(crowd.X), len(said.y), len(said.annotators)) == (1000, 6723, 248)
    assert per_item(crowd) == {6: 459, 7: 391, 8: 124, 9: 21, 10: 4, 11: 1}
    pairs = np.unique(np.stack([said.item, said.annotator]), axis=1)
    assert np.bincount(np.bincount(pairs[0])).tolist() == [0, 0, 0, 0, 0, 0, 800, 200]
    rows = Counter(np.bincount(said.annotator).tolist())
    assert rows[54] == 1
    assert (crowd.X.min(), crowd.X.max()) == (0, 9997)


def test_cifar10s_keeps_what_annotators_said_again():
    assert repeats(real("cifar10s")) == {2: 517, 4: 2}


def test_cifar10s_soft_labels_are_probabilities_with_ties_at_the_top():
    crowd = real("cifar10s")
    y = crowd.annotations.y
    assert np.isfinite(y).all()
    assert (y >= 0).all()
    assert np.allclose(y.sum(axis=1), 1)
    top = np.isclose(y, y.max(axis=1, keepdims=True), rtol=0, atol=1e-12).sum(axis=1)
    assert (np.isclose(y.max(axis=1), 1)).sum() == 2375
    assert (top > 1).sum() == 383
    assert (top == 10).sum() == 19
    assert np.array_equal(crowd.stated, y.max(axis=1))
    assert crowd.stated.min() == pytest.approx(0.1)


def test_cifar10s_means_are_right_as_often_as_its_source_says():
    crowd = real("cifar10s")
    if crowd.gold is None:
        pytest.skip("cifar10_images is not beside cifar10s, so there is no gold")
    assert np.mean(votes_of(crowd).argmax(axis=1) == crowd.gold) == pytest.approx(0.938, abs=1e-3)


def test_cifar10s_without_images_has_no_gold(tmp_path):
    home = tmp_path / "cifar10s"
    soft = {
        "12": [np.eye(10)[3].tolist(), np.full(10, 0.1).tolist()],
        "5": [np.eye(10)[0].tolist()],
    }
    (home / "cifar10s_data").mkdir(parents=True)
    path = home / "cifar10s_data" / "cifar10s_t2clamp_redist10.json"
    path.write_text(json.dumps(soft))
    rows = [("12", "1", "1"), ("12", "0", "0"), ("5", "1", "0")]
    rows = [dict(zip(("img_id", "annotator", "json_index"), row, strict=True)) for row in rows]
    write_rows(home / "derived_annotator_index.csv", rows)
    crowd = cifar10s(home)
    assert crowd.gold is None
    assert crowd.X.tolist() == [5, 12]
    assert crowd.annotations.item.tolist() == [1, 1, 0]
    assert crowd.stated.tolist() == [0.1, 1, 1]


# ConvAbuse


def test_convabuse_has_the_counts_of_its_source():
    crowd = real("convabuse")
    said = crowd.annotations
    assert (len(crowd.X), len(said.y), len(said.annotators)) == (4185, 12768, 8)
    assert Counter(crowd.split.tolist()) == {"train": 2501, "valid": 831, "test": 853}
    by_annotator = np.bincount(said.annotator)
    assert (by_annotator.min(), by_annotator.max()) == (1044, 1789)
    of = crowd.split[said.item]
    assert [int((of == part).sum()) for part in ("train", "valid", "test")] == [7652, 2502, 2614]
    distinct = np.unique(np.stack([said.item, said.annotator]), axis=1)[0]
    train = np.bincount(distinct)[crowd.split == "train"]
    assert np.bincount(train).tolist() == [0, 0, 653, 1458, 232, 136, 21, 1]


def test_convabuse_levels_have_the_counts_of_its_source():
    crowd = real("convabuse", severity=True)
    assert crowd.annotations.labels.tolist() == [-3, -2, -1, 0, 1]
    assert np.bincount(crowd.annotations.y).tolist() == [282, 934, 813, 671, 10068]
    abusive = real("convabuse").annotations.y
    assert np.array_equal(abusive, crowd.annotations.y < 3)


def test_convabuse_keeps_what_annotators_said_again_even_if_they_contradict_themselves():
    crowd = real("convabuse", severity=True)
    again = repeats(crowd)
    assert sum(again.values()) == 345
    assert sum((n - 1) * count for n, count in again.items()) == 357
    said = crowd.annotations
    levels = {}
    for i, m, k in zip(said.item.tolist(), said.annotator.tolist(), said.y.tolist(), strict=True):
        levels.setdefault((i, m), set()).add(k)
    assert sum(len(given) > 1 for given in levels.values()) == 28


def conversation(example, **cells):
    columns = [f"Annotator{m}_is_abuse.{level}" for m in range(1, 9) for level in range(-3, 2)]
    turns = dict.fromkeys(("prev_agent", "prev_user", "agent", "user"), "text")
    return {"example_id": example, **turns, **dict.fromkeys(columns, ""), **cells}


def test_one_cell_may_hold_several_answers(tmp_path):
    twice = {f"Annotator2_is_abuse.{level}": "0, 0, 0" for level in (-3, -2, 0)}
    twice |= {"Annotator2_is_abuse.-1": "0, 1, 0", "Annotator2_is_abuse.1": "1, 0, 1"}
    once = {f"Annotator8_is_abuse.{level}": str(int(level == -3)) for level in range(-3, 2)}
    for part, rows in {
        "train": [conversation("278.0", **twice, **once)],
        "valid": [conversation("3.0", **once)],
        "test": [conversation("4", **once)],
    }.items():
        write_rows(tmp_path / "2_splits" / f"ConvAbuseEMNLP{part}.csv", rows)
    crowd = convabuse(tmp_path, severity=True)
    said = crowd.annotations
    assert said.items.tolist() == [278, 3, 4]
    assert crowd.split.tolist() == ["train", "valid", "test"]
    assert said.labels[said.y].tolist() == [1, -1, 1, -3, -3, -3]
    assert said.annotators[said.annotator].tolist() == ["Annotator2"] * 3 + ["Annotator8"] * 3
    assert convabuse(tmp_path).annotations.y.tolist() == [0, 1, 0, 1, 1, 1]


# MRE

MRE_COUNTS = {
    "cause": ((975, 15035, 304), {15: 943, 16: 5, 30: 27}, [728, 247], 2, 422, 0.764),
    "treat": ((621, 9723, 286), None, [327, 294], 3, 201, 0.795),
}


@pytest.mark.parametrize("relation", MRE_COUNTS)
def test_mre_has_the_counts_of_its_source(relation):
    crowd = real("mre", relation=relation)
    said = crowd.annotations
    sizes, by_item, gold, ties, unanimous, agreement = MRE_COUNTS[relation]
    assert (len(crowd.X), len(said.y), len(said.annotators)) == sizes
    assert by_item in (None, per_item(crowd))
    assert np.bincount(crowd.gold).tolist() == gold
    votes = votes_of(crowd)
    assert (votes[:, 0] == votes[:, 1]).sum() == ties
    assert (votes.min(axis=1) == 0).sum() == unanimous
    right = votes.argmax(axis=1) == crowd.gold
    assert right.mean() == pytest.approx(agreement, abs=2e-3)


def test_mre_reads_both_forms_of_ids_several_relations_and_no_expert(tmp_path):
    def judged(expert):
        return {"term1": "A", "term2": "B", "sentence": f"A and B, {expert}", "expert": expert}

    experts = {904916: "1", 901840: "-1", 5: "NA", 6: "", 7: "1"}
    gold = [{"SID": str(sid), **judged(expert)} for sid, expert in experts.items()]
    write_rows(tmp_path / "ground_truth_cause.csv", gold)
    votes = [
        ("904916-FS1", "[TREATS] [CAUSES]"),
        ("904916-FS1", "[NONE]"),
        ("901840", "[CAUSES]"),
        ("5", "[CAUSES]"),
        ("6", "[CAUSES]"),
        ("8", "[CAUSES]"),
    ]
    rows = [{"_worker_id": "9", "relations": r, "sent_id": s} for s, r in votes]
    write_rows(tmp_path / "raw" / "RelEx" / "RelEx_batch_01.csv", rows)
    crowd = mre(tmp_path)
    said = crowd.annotations
    assert said.items.tolist() == [901840, 904916]
    assert crowd.gold.tolist() == [0, 1]
    assert said.items[said.item].tolist() == [904916, 904916, 901840]
    assert said.y.tolist() == [1, 0, 1]
    assert crowd.X[1] == "A and B, 1"
    assert crowd.terms == [("A", "B")] * 2


def test_mre_knows_two_relations():
    with pytest.raises(ValueError, match="`relation` must be cause or treat; 'cures' came"):
        mre(relation="cures")
