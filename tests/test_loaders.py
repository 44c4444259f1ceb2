"""Real crowds from local folders: the counts and quirks that their SOURCE.txt lists."""

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from real_crowds import (
    KNOWN_TRUTH,
    LOADERS,
    SHARED,
    module,
    original,
    per_item,
    real,
    repeats,
    rows_of,
    unpin,
    votes_of,
    write_rows,
)

from slencodings.datasets import download, local
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.mre import mre
from slencodings.datasets.rte import rte
from slencodings.datasets.truth_inference import truth_inference
from slencodings.datasets.uds_factuality import uds_factuality

DOCUMENT = Path(__file__).parents[1] / "docs" / "datasets.md"

# Where the files are


def test_the_folder_given_is_the_only_one_looked_in(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"'rte' needs the file .* {tmp_path}\. Pass"):
        rte(tmp_path)


def test_the_environment_comes_first_then_the_cache_then_the_folder_beside_the_checkout(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SLENCODINGS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SLENCODINGS_CACHE", str(tmp_path / "cache"))
    file = download.unchanged("file", download.github("a/b", "c", "file", 1))
    look = ("uds_factuality", None, [file])
    with pytest.raises(FileNotFoundError, match="needs the file file; looked in") as error:
        local.find(*look, shared="uds_confidence")
    places = [
        tmp_path / "data" / "uds_factuality",
        tmp_path / "data" / "uds_confidence",
        tmp_path / "cache" / "uds_factuality",
        SHARED / "uds_factuality",
        SHARED / "uds_confidence",
    ]
    assert f"looked in {', '.join(map(str, places))}. Pass" in str(error.value)
    for place in reversed(places[:3]):
        place.mkdir(parents=True)
        (place / "file").touch()
        assert local.find(*look, shared="uds_confidence") == place


# Bad input

READ = {
    "rte": "rte/rte/rte1.tsv",
    "uds_factuality": "uds_confidence/raw/sentence/annotations/factuality.zip",
    "cifar10s": "cifar10s/derived_annotator_index.csv",
    "convabuse": "convabuse/2_splits/ConvAbuseEMNLPtest.csv",
    "mre": "mre/raw/RelEx/RelEx_batch_33.csv",
}


@pytest.mark.parametrize("harm", ["cut", "altered", "missing"])
@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_missing_cut_or_altered_is_named(name, harm, tmp_path):
    original(READ[name])
    folder, _, path = READ[name].partition("/")
    home = tmp_path / folder
    shutil.copytree(SHARED / folder, home, copy_function=lambda a, b: Path(b).symlink_to(a))
    data = (home / path).read_bytes()
    (home / path).unlink()
    if harm == "missing":
        with pytest.raises(FileNotFoundError, match=f"{name!r} needs the file {path}; looked in"):
            LOADERS[name](home)
        return
    digit = data.rindex(b"0")
    (home / path).write_bytes(
        data[: len(data) // 2] if harm == "cut" else data[:digit] + b"1" + data[digit + 1 :]
    )
    with pytest.raises(ValueError, match=r"is cut or altered: .* needed|needed .* found") as error:
        LOADERS[name](home)
    assert str(home / path) in str(error.value)
    assert "It comes from https://raw.githubusercontent.com/" in str(error.value)


def test_an_altered_text_of_uds_is_named(tmp_path):
    original("uds_confidence/derived_ewt_text.json.gz")
    home = tmp_path / "uds"
    shutil.copytree(SHARED / "uds_confidence", home)
    (home / "derived_ewt_text.json.gz").chmod(0o644)
    (home / "derived_ewt_text.json.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(ValueError, match=r"derived_ewt_text\.json\.gz is cut or altered"):
        uds_factuality(home)


def test_other_classes_in_the_images_are_named(tmp_path):
    original("cifar10s/derived_annotator_index.csv")
    (tmp_path / "cifar10s").symlink_to(SHARED / "cifar10s")
    (tmp_path / "cifar10_images").mkdir()
    images = tmp_path / "cifar10_images" / "cifar10_test10000_train5000.npz"
    np.savez(images, test_labels=np.zeros(10000, np.uint8))
    with pytest.raises(ValueError, match=r"train5000\.npz is cut or altered: its content needed"):
        cifar10s(tmp_path / "cifar10s")


@pytest.mark.parametrize("name", [*LOADERS, *KNOWN_TRUTH])
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
    assert crowd.gold is None or (crowd.gold.shape == (N,) and set(crowd.gold) <= {-1, *range(K)})


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


def test_rte_texts_have_no_html_entities_and_keep_their_quotation_marks(tmp_path, monkeypatch):
    unpin(monkeypatch)
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
    texts = ["".join(pair) for pair in real("rte").X]
    assert not [text for text in texts if "&quot;" in text or "&apos;" in text]
    assert b"&quot;" in original("rte/rte/rte1.tsv").read_bytes()


def test_rte_gold_is_the_value_of_its_pair():
    crowd = real("rte")
    with original("rte/rte/rte1.tsv").open(encoding="utf-8") as file:
        lines = [line.split("\t") for line in file][1:]
    value = {line[0]: line[1] for line in lines}
    assert len(value) == 800
    told = [value[name] for name in crowd.annotations.items.tolist()]
    assert len({(v, k) for v, k in zip(told, crowd.gold.tolist(), strict=True)}) == 2


def test_rte_annotators_are_right_as_often_as_its_source_says():
    crowd = real("rte")
    said = crowd.annotations
    right = np.bincount(said.annotator, said.y == crowd.gold[said.item])
    share = right / np.bincount(said.annotator)
    assert (share.min(), share.max()) == (0.4, 1)
    assert share.mean() == pytest.approx(0.837, abs=5e-4)


# UDS factuality


def test_uds_factuality_has_the_counts_of_its_source():
    crowd = real("uds_factuality")
    said = crowd.annotations
    assert (len(crowd.X), len(said.y), len(said.annotators)) == (27403, 52886, 47)
    assert per_item(crowd) == {1: 1920, 2: 25483}
    assert Counter(crowd.split.tolist()) == {"train": 22209, "dev": 2646, "test": 2548}
    assert np.bincount(said.y).tolist() == [18764, 34122]
    assert np.bincount(said.stated.astype(int)).tolist() == [72, 1913, 12095, 9497, 29309]
    assert np.array_equal(said.uncertainty, 1 - said.stated / 4)
    assert crowd.gold is None
    assert (votes_of(crowd) == 1).all(axis=1).sum() == 4531


def test_the_other_annotator_of_uds_agrees_more_with_those_who_are_sure():
    crowd = real("uds_factuality")
    said = crowd.annotations
    paired = (np.bincount(said.item) == 2)[said.item]
    agrees = votes_of(crowd)[said.item, said.y] == 2
    shares = [agrees[paired & (said.stated == level)].mean() for level in range(5)]
    assert np.allclose(shares, [0.49, 0.58, 0.75, 0.83, 0.87], atol=6e-3)


def test_uds_predicates_are_words_of_their_sentences_but_for_three():
    crowd = real("uds_factuality")
    assert crowd.X[0] == ("From the AP comes this story :", "comes")
    assert sum(word == "" for sentence, word in crowd.X if sentence) == 3


def test_a_uds_sentence_that_is_not_there_leaves_its_text_empty(tmp_path, monkeypatch):
    unpin(monkeypatch)
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
    (tmp_path / "derived_ewt_text.json.gz").unlink()
    assert uds_factuality(tmp_path).X == [("", "")] * 2


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


def test_convabuse_votes_have_the_counts_of_their_source():
    crowd = real("convabuse")
    votes = votes_of(crowd)
    parts = [crowd.split == part for part in ("train", "valid", "test")]
    tie, abusive = votes[:, 0] == votes[:, 1], votes[:, 1] > votes[:, 0]
    unanimous = votes.min(axis=1) == 0
    assert [int(abusive[part].sum()) for part in parts] == [339, 112, 127]
    assert [int(tie[part].sum()) for part in parts] == [78, 29, 33]
    assert [int(unanimous[part].sum()) for part in parts] == [2172, 712, 740]


def test_so_many_cells_of_convabuse_hold_several_answers():
    rows = rows_of("convabuse/2_splits/ConvAbuseEMNLPtrain.csv")
    assert sum(", " in row[c] for row in rows for c in row if c.startswith("Annotator")) == 3713


def test_convabuse_splits_say_what_its_full_table_says():
    crowd = real("convabuse", severity=True)
    full = rows_of("convabuse/1_full/ConvAbuseEMNLPfull.csv")
    assert len(full) == len(crowd.annotations.y)
    columns = [f"is_abuse.{level}" for level in range(-3, 2)]
    counts = [sum(row[c] in ("1", "1.0") for row in full) for c in columns]
    assert counts == np.bincount(crowd.annotations.y).tolist()


def conversation(example, **cells):
    columns = [f"Annotator{m}_is_abuse.{level}" for m in range(1, 9) for level in range(-3, 2)]
    turns = dict.fromkeys(("prev_agent", "prev_user", "agent", "user"), "text")
    return {"example_id": example, **turns, **dict.fromkeys(columns, ""), **cells}


def test_one_cell_may_hold_several_answers(tmp_path, monkeypatch):
    unpin(monkeypatch)
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


def test_mre_reads_both_forms_of_ids_several_relations_and_no_expert(tmp_path, monkeypatch):
    unpin(monkeypatch)
    monkeypatch.setattr(module("mre"), "_BATCHES", module("mre")._BATCHES[:1])

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


def test_mre_batches_have_the_counts_of_their_source():
    votes = [rows_of(f"mre/{file.path}") for file in module("mre")._BATCHES]
    rows = [row for batch in votes for row in batch]
    assert (len(votes), len(rows), len({row["_worker_id"] for row in rows})) == (46, 50962, 468)
    plain = [i for i, batch in enumerate(votes, 1) if all(r["sent_id"].isdigit() for r in batch)]
    assert plain == [17, 18, 19, 20, 21]
    sentences = Counter(row["sent_id"].split("-")[0] for row in rows)
    assert Counter(sentences.values()) == {15: 3058, 30: 166, 16: 7}
    pairs = Counter((row["sent_id"].split("-")[0], row["_worker_id"]) for row in rows)
    assert sum(n - 1 for n in pairs.values()) == 736
    ticked = [row["relations"].split() for row in rows]
    assert (sum(len(r) == 1 for r in ticked), max(map(len, ticked))) == (45544, 13)
    relations = Counter(relation for r in ticked for relation in r)
    assert len(relations) == 14
    told = ("[TREATS]", "[CAUSES]", "[NONE]", "[OTHER]")
    assert [relations[name] for name in told] == [12722, 7004, 3198, 3045]
    assert {float(row["_trust"]) for row in rows} == {1}
    gold = {row["SID"] for row in rows_of("mre/ground_truth_cause.csv")}
    assert (len(gold), len(gold - set(sentences)), len(set(sentences) - gold)) == (3984, 842, 89)


def test_mre_knows_two_relations():
    with pytest.raises(ValueError, match="`relation` must be cause or treat; 'cures' came"):
        mre(relation="cures")  # pyright: ignore[reportArgumentType]


# Crowds with known truth


def test_known_truths_have_the_counts_of_their_source():
    crowds = {name: real(name) for name in KNOWN_TRUTH}
    known = {name: int(np.sum(crowd.gold >= 0)) for name, crowd in crowds.items()}
    assert list(known.values()) == [2653, 2275, 1000, 333, 576]
    twice = [sum(repeats(crowd).values()) for crowd in crowds.values()]
    assert twice == [0, 0, 0, 2918, 1746]
    once = [per_item(crowd).get(1, 0) for crowd in crowds.values()]
    assert once == [4, 615, 0, 379, 0]


def test_known_truths_are_read_by_their_codes(tmp_path, monkeypatch):
    unpin(monkeypatch)
    votes = [("7", "3", "2"), ("7", "1", "0"), ("5", "1", "2")]
    keys = ("item", "worker", "label")
    write_rows(tmp_path / "web" / "label.csv", [dict(zip(keys, v, strict=True)) for v in votes])
    write_rows(tmp_path / "web" / "truth.csv", [{"item": "7", "truth": "2"}])
    crowd = truth_inference("web", tmp_path)
    said = crowd.annotations
    assert crowd.X == [5, 7]
    assert crowd.gold.tolist() == [-1, 1]
    assert said.annotators[said.annotator].tolist() == [3, 1, 1]
    assert said.labels[said.y].tolist() == [2, 0, 2]


def test_a_crowd_with_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"`name` must be one of web, trec, .*; 'imdb' came"):
        truth_inference("imdb")  # pyright: ignore[reportArgumentType]


# What the document says


@pytest.mark.parametrize("name", [*LOADERS, "treat", *KNOWN_TRUTH])
def test_the_document_has_the_counts_that_the_loaders_have(name):
    crowd = real("mre", relation="treat") if name == "treat" else real(name)
    said = crowd.annotations
    calls = {"mre": 'mre(relation="cause")', "treat": 'mre(relation="treat")'}
    calls |= {known: f'truth_inference("{known}")' for known in KNOWN_TRUTH}
    call = calls.get(name, f"{name}()")
    counts = (len(crowd.X), len(said.y), len(said.annotators))
    start = " | ".join([f"`{call}`", *(f"{n:,}" for n in counts), str(len(said.labels))])
    row = next(line for line in DOCUMENT.read_text().splitlines() if start in line)
    assert row.split(" | ")[6] == ("no" if crowd.gold is None else "yes")
