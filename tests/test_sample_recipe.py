"""Learn whom to trust on a sample of the items, and apply it to the whole table in its engine."""

import re
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles
from engines import Engine, every_engine
from hypothesis import given
from hypothesis import strategies as st
from strategies import present

import slencodings as sle
from slencodings.aggregate import dawid_skene
from slencodings.metrics import jsd
from slencodings.trust import Ridge, crowd_from_json, learn_crowd, sample_items
from slencodings.trust.learn_from_table import sample_by_hash

P = 2**31 - 1


def table(rows=600, items=80, people=25, seed=0):
    """Busy annotators and rare ones; some items have one annotator, some rows lack a name."""
    rng = np.random.default_rng(seed)
    columns = {
        "item": [f"i{i}" for i in rng.integers(0, items, rows)],
        "who": [f"w{m}" for m in (people * rng.random(rows) ** 3).astype(int)],
        "row": list(range(rows)),
    }
    columns["item"][5], columns["who"][9], columns["item"][11] = None, None, "alone"
    columns["item"] += ["twice", "twice"]
    columns["who"] += ["w0", "w0"]
    columns["row"] += [rows, rows + 1]
    return columns


def lot(place, seed):
    """In whole numbers of any size."""
    x = (place * 1_181_783_497 + (seed * 7_919 + 1) % P) % P
    for _ in range(2):
        x = (x**5 + 12_345) % P
    return x / P


def chances(columns, share, per_annotator):
    """How likely each shared item is to be taken, in the order of items, by loops."""
    rows = zip(*columns.values(), strict=True)
    people = {}
    for item, who, _ in rows:
        if item is not None and who is not None:
            people.setdefault(item, set()).add(who)
    people = {item: those for item, those in people.items() if len(those) > 1}
    count = Counter(who for those in people.values() for who in those)
    return {
        item: max(share, *(per_annotator / count[who] for who in people[item]))
        for item in sorted(people)
    }


def sampled(columns, share, per_annotator, seed):
    """The rows of the sample, by loops."""
    p = chances(columns, share, per_annotator)
    taken = {item for place, item in enumerate(p) if lot(place, seed) < p[item]}
    rows = zip(*columns.values(), strict=True)
    return {row for item, who, row in rows if item in taken and who is not None}


# The sample


@every_engine
def test_every_engine_takes_the_same_sample(engine: Engine):
    columns, how = table(), {"share": 0.2, "per_annotator": 4, "seed": 3}
    found = sample_items(engine(columns), item="item", annotator="who", **how)
    assert type(found) is engine.kind
    got = engine.read(found)
    assert list(got) == list(columns)
    expected = sampled(columns, **how)
    assert 60 < len(expected) < 540
    assert sorted(got["row"]) == sorted(expected)
    said = dict(zip(columns["row"], zip(columns["item"], columns["who"], strict=True), strict=True))
    rows = zip(got["row"], got["item"], got["who"], strict=True)
    assert all(said[row] == (item, who) for row, item, who in rows)


@given(st.integers(0, 2**40), st.floats(0, 1), st.integers(0, 30), st.randoms())
def test_the_sample_is_as_defined_for_any_order_of_rows(seed, share, per_annotator, random):
    columns, how = table(rows=150, items=30), {"share": share, "per_annotator": per_annotator}
    rows = list(zip(*columns.values(), strict=True))
    random.shuffle(rows)
    shuffled = pl.DataFrame(rows, schema=list(columns), orient="row")
    got = sample_items(shuffled, item="item", annotator="who", **how, seed=seed)
    assert set(got["row"]) == sampled(columns, **how, seed=seed)
    assert got.height == len(set(got["row"]))


def test_all_items_that_are_shared_or_none():
    columns = table()
    how: Roles = {"item": "item", "annotator": "who"}
    everything = sample_items(columns, **how, share=1)
    people = pl.DataFrame(columns).drop_nulls().group_by("item").agg(pl.col("who").n_unique())
    assert set(everything["item"]) == set(people.filter(pl.col("who") > 1)["item"])
    assert "alone" not in everything["item"]
    assert "twice" not in everything["item"]
    assert len(sample_items(columns, **how, share=0, per_annotator=0)["item"]) == 0


def test_every_annotator_keeps_enough_or_all_they_have():
    columns = table(rows=20_000, items=4_000, people=300, seed=1)
    whole = pl.DataFrame(columns).drop_nulls()
    several = pl.col("who").n_unique().over("item") > 1
    had = Counter(whole.filter(several).unique(["item", "who"])["who"])
    sample = sample_items(whole, item="item", annotator="who", share=0.02, per_annotator=20)
    kept = Counter(sample.unique(["item", "who"])["who"])
    assert all(kept[who] == n for who, n in had.items() if n <= 20)
    # 20 are expected at least, with a standard deviation of less than their root.
    assert all(kept[who] > 20 - 4 * 20**0.5 for who, n in had.items() if n > 20)
    p = np.minimum(list(chances(columns, 0.02, 20).values()), 1)
    off = sample["item"].n_unique() - p.sum()
    assert abs(off) < 4 * np.sqrt(np.sum(p * (1 - p)))


def by_hash(columns, *, size, per_annotator=0, seed=0, annotator: str | None = "who"):
    relation = duckdb.from_arrow(pa.table(columns))
    how = {"size": size, "per_annotator": per_annotator, "seed": seed}
    return sample_by_hash(relation, item="item", annotator=annotator, **how)


@given(st.integers(0, 2**40), st.integers(1, 300), st.integers(0, 30), st.randoms())
def test_a_sample_by_hash_has_whole_shared_items_in_any_order_of_rows(seed, size, each, random):
    columns = table(rows=400, items=80)
    rows = list(zip(*columns.values(), strict=True))
    random.shuffle(rows)
    shuffled = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    got = by_hash(columns, size=size, per_annotator=each, seed=seed)
    again = by_hash(shuffled, size=size, per_annotator=each, seed=seed)
    assert sorted(got["row"]) == sorted(again["row"])
    shared = chances(columns, 1, 0)
    taken = set(got["item"])
    assert taken <= set(shared)
    whole = [row for item, who, row in zip(*columns.values(), strict=True) if item in taken and who]
    assert sorted(got["row"]) == whole
    assert len(whole) >= size / 2 or taken == set(shared)


def test_in_a_sample_by_hash_every_annotator_keeps_enough_or_all_they_have():
    columns = table(rows=20_000, items=4_000, people=300, seed=1)
    whole = pl.DataFrame(columns).drop_nulls()
    had = Counter(whole["who"])
    got = pl.DataFrame(by_hash(columns, size=400, per_annotator=20))
    assert 400 < len(got) < len(whole) * 0.75
    kept = Counter(got["who"])
    several = whole.filter(pl.col("who").n_unique().over("item") > 1)
    assert all(kept[who] == n for who, n in Counter(several["who"]).items() if had[who] <= 20)
    assert all(kept[who] > 20 - 4 * 20**0.5 for who, n in had.items() if n > 20)
    without = pl.DataFrame(by_hash(columns, size=400, annotator=None))
    assert 200 <= len(without) < 800


def test_where_few_items_are_shared_a_sample_by_hash_takes_more_of_them():
    item = [*range(10_000), *range(100)]
    columns = {"item": item, "who": ["a"] * 10_000 + ["b"] * 100, "row": list(range(10_100))}
    assert 50 <= len(by_hash(columns, size=100)["item"]) <= 200


def test_lots_are_spread_like_random_ones():
    from scipy.stats import kstest

    lots = np.asarray([lot(place, 7) for place in range(40_000)])
    assert kstest(lots, "uniform").pvalue > 0.01
    for period in (1, 2, 7, 100):  # Items may come in batches.
        assert abs(np.corrcoef(lots[period:], lots[:-period])[0, 1]) < 0.02
    others = np.asarray([lot(place, 8) for place in range(40_000)])
    assert np.mean((lots < 0.1) & (others < 0.1)) == pytest.approx(0.01, abs=0.002)


def test_names_of_any_kind_are_taken():
    numbers = {"item": [3, 3, 1, 1, None], "who": [0.5, 1.5, 0.5, np.nan, 1.5]}
    for kind in ("category", None):
        frame = pd.DataFrame(numbers).astype({"item": "Int64"})
        frame = frame if kind is None else frame.assign(item=frame["item"].astype("str"))
        frame = frame if kind is None else frame.astype({"item": kind})
        got = sample_items(frame, item="item", annotator="who", share=1)
        assert [str(x) for x in got["item"]] == ["3", "3"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"share": 1.5}, r"`share` must be a number in \[0, 1\]; 1.5 came"),
        ({"share": "x"}, r"`share` must be a number in \[0, 1\]; 'x' came"),
        ({"per_annotator": 2.5}, "`per_annotator` must be a whole number of at least 0; 2.5 came"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0; -1 came"),
        ({"annotator": "whom"}, "there is no column 'whom' for `annotator`.*'who'"),
    ],
)
def test_what_cannot_be_sampled_is_told(wrong, words):
    with pytest.raises(ValueError, match=words):
        sample_items(table(), **({"item": "item", "annotator": "who"} | wrong))


# The recipe


def simulated(N=6000, M=40, per_item=5, K=3):
    """A crowd whose truth and skills are known, as a table."""
    rng = np.random.default_rng(5)
    who = rng.permuted(np.tile(np.arange(M), (N, 1)), axis=1)[:, :per_item]
    truth, skill = rng.integers(0, K, N), rng.uniform(0.35, 0.95, M)
    wrong = (truth[:, None] + rng.integers(1, K, who.shape)) % K
    y = np.where(rng.random(who.shape) < skill[who], truth[:, None], wrong)
    said = {"item": np.repeat(np.arange(N), per_item), "who": who.ravel(), "y": y.ravel()}
    return said, truth, skill


SAID, TRUTH, SKILL = simulated()
ROLES: Roles = {"item": "item", "annotator": "who", "label": "y"}


def read(rows):
    return sle.from_table(rows, **ROLES, labels=[0, 1, 2])


@pytest.fixture(scope="module")
def sample():
    return sample_items(SAID, item="item", annotator="who", share=0.1, per_annotator=20)


def test_a_tenth_of_the_items_tells_the_reliability_of_all_to_its_standard_error(sample):
    part, whole = read(sample), read(SAID)
    assert len(part.item) / len(whole.item) == pytest.approx(0.1, abs=0.01)
    few, all_ = (present(dawid_skene(x).reliability) for x in (part, whole))
    n, of = (np.bincount(x.annotator, minlength=40) for x in (part, whole))
    # Of n of all judgments, drawn without putting back; the truth they are right about is
    # inferred too, which takes a part of what each of them tells.
    error = np.sqrt(all_ * (1 - all_) / n * (1 - n / of))
    z = (few - all_) / error
    assert np.sqrt(np.mean(z**2)) < 1.5
    assert np.max(np.abs(z)) < 5


def test_the_crowd_of_a_tenth_predicts_votes_nearly_as_well_as_that_of_all(sample):
    whole = read(SAID)
    few, all_ = (learn_crowd(x, ridge=Ridge()) for x in (read(sample), whole))

    def log_loss(crowd):
        said = crowd.predict(whole)[np.arange(len(whole.y)), whole.y]
        return -np.mean(np.log(said))

    loss = {"few": log_loss(few), "all": log_loss(all_)}
    # Wilks: d parameters learned from n annotations cost a chi-square of d over 2 n. There are a
    # worth and a confusion of 3 x 2 for each annotator, and habits of 3 x 2.
    n, d = few.count.sum(), 40 * 7 + 1 + 6
    excess = loss["few"] - loss["all"]
    assert excess < (d + 4 * np.sqrt(2 * d)) / (2 * n)
    assert excess < 0.25 * (all_.losses["votes"] - loss["all"])


def test_fusing_all_with_the_reliability_of_a_tenth_is_nearly_as_near_to_the_truth(sample):
    off = {}
    for name, rows in {"few": sample, "all": SAID, "none": None}.items():
        learned = None if rows is None else dawid_skene(read(rows)).reliability
        how = None if learned is None else dict(enumerate(learned.tolist()))
        fused = sle.fuse_table(pl.LazyFrame(SAID), **ROLES, reliability=how).collect()
        p = fused.sort("item").select(f"probability_{k}" for k in range(3)).to_numpy()
        log_loss = -np.mean(np.log(p[np.arange(len(p)), TRUTH]))
        off[name] = {"log-loss": log_loss, "jsd": np.mean(jsd(np.eye(3)[TRUTH], p))}
    for measure, all_ in off["all"].items():
        gain = off["none"][measure] - all_
        assert gain > 0.02
        assert abs(off["few"][measure] - all_) < 0.15 * gain


def test_reliability_of_a_sample_serves_as_a_mapping_with_the_mean_for_the_rest(sample):
    part = read(sample)
    learned = present(dawid_skene(part).reliability)
    names = [*range(40), 40]  # one annotator shares no item, so is in no sample
    new = {"item": [6000], "who": [40], "y": [1]}
    rows = {name: np.append(SAID[name], new[name]) for name in SAID}
    by_name = dict(zip(part.annotators.tolist(), learned, strict=True))
    reliability = dict.fromkeys(names, float(learned.mean())) | by_name
    fused = sle.fuse_table(pl.LazyFrame(rows), **ROLES, reliability=reliability).collect()
    got = fused.sort("item")["uncertainty"].to_numpy()
    expected = sle.aggregate.sle(read(rows), reliability=np.append(learned, learned.mean()))
    np.testing.assert_allclose(got, expected.uncertainty, rtol=0, atol=1e-12)


def test_the_recipe_runs_from_the_command_line(tmp_path, request):
    run = request.getfixturevalue("sle")
    some = {name: x[:6000] for name, x in SAID.items()}
    text = {name: [f"{name}{v}" for v in x] for name, x in some.items()}
    whole = pa.table({"item": text["item"], "annotator": text["who"], "label": text["y"]})
    (tmp_path / "all").mkdir()
    for part in range(3):
        pq.write_table(whole.slice(2000 * part, 2000), tmp_path / "all" / f"{part}.parquet")
    small = sample_items(whole, item="item", annotator="annotator", share=0.3)
    pq.write_table(small, tmp_path / "sample.parquet")
    how = ["--save-crowd", "crowd.json"]
    code, _, told = run("encode", "sample.parquet", "-o", "sample-targets.parquet", *how)
    assert code == 0, told
    assert re.search(r"learned +what [\d,]+ annotations by 40 annotators are worth", told)
    code, _, told = run("encode", "all/*.parquet", "-o", "targets.parquet", "--weigh", how[-1])
    assert code == 0, told
    crowd = crowd_from_json(Path("crowd.json").read_text())
    roles: Roles = {"item": "item", "annotator": "annotator", "label": "label"}
    expected = sle.fuse_table(pl.from_arrow(whole), **roles, crowd=crowd).sort("item")
    got = pl.read_parquet("targets.parquet").sort("item")
    assert got["item"].to_list() == expected["item"].to_list()
    np.testing.assert_allclose(got["uncertainty"], expected["uncertainty"], rtol=0, atol=1e-12)
    for label in ("y0", "y1", "y2"):
        name = f"probability_{label}"
        np.testing.assert_allclose(got[name], expected[name], rtol=0, atol=1e-12)
