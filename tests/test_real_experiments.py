"""Runs on real data: nothing of what is tested on leaks into what is learned."""

import pickle
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from strategies import present

torch = pytest.importorskip("torch")
# Looked for, not imported: every process of a run collects this file, and one runs it.
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

from fitting import crowd_of, one_thread
from tiny_experiments import PAIRS, PLAN, TEXTS, tiny_data, tiny_encoder

from experiments import data as sets
from experiments import real, texts
from slencodings import Opinion, evaluate
from slencodings.torch import SLEClassifier

__all__ = ["one_thread"]

# Items to learn from and to test on


def test_each_item_is_tested_on_once_and_never_learned_from_in_that_fold():
    splits = sets.folds(23)
    assert sorted(np.concatenate([test for _, test in splits]).tolist()) == list(range(23))
    for train, test in splits:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(23))
    for one, other in zip(splits, sets.folds(23), strict=True):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))


def test_a_part_of_a_crowd_holds_nothing_of_the_rest():
    said = crowd_of(np.arange(6) % 3)
    said = replace(said, annotator=np.arange(18), annotators=np.arange(18) * 10)
    found = sets.part(said, np.asarray([4, 1]))
    assert found.items.tolist() == ["item-4", "item-1"]
    assert found.item.tolist() == [1, 1, 1, 0, 0, 0]
    assert found.annotators[found.annotator].tolist() == [30, 40, 50, 120, 130, 140]


def test_some_items_keep_their_inputs_labels_and_annotations():
    data = tiny_data()
    less = sets.some(data, [(np.asarray([7, 2]), np.asarray([30]))])
    np.testing.assert_array_equal(less.X, data.X[[2, 7, 30]])
    assert [x.tolist() for x in less.splits[0]] == [[1, 0], [2]]
    assert less.gold is not None
    assert data.gold is not None
    np.testing.assert_array_equal(less.gold, data.gold[[2, 7, 30]])
    np.testing.assert_array_equal(less.annotations.sums(), data.annotations.sums()[[2, 7, 30]])
    np.testing.assert_allclose(present(less.annotations.stated), 1 - less.annotations.uncertainty)


@pytest.mark.parametrize("dataset", ["mre", "rte", "uds"])
def test_texts_become_what_the_network_of_the_data_set_takes(dataset):
    data = tiny_data(N=len(TEXTS))._replace(X=PAIRS if dataset == "rte" else TEXTS)
    if dataset == "uds":
        data = data._replace(X=[(text, "the", 1) for text in TEXTS])
    layers = 0 if dataset == "uds" else 1
    found = sets.encoded(data, dataset, tiny_encoder(), layers, None)
    y = np.arange(len(TEXTS)) % 2
    model = SLEClassifier(found.network(), max_epochs=1, random_state=0).fit(found.X, y)
    assert found.encoder == "tiny"
    assert model.predict_opinion(found.X).belief.shape == (len(TEXTS), 2)


def test_the_whole_of_a_bert_is_trained_by_the_plan_of_the_paper(monkeypatch):
    from experiments.__main__ import _parser, _plan

    words = ["--layers", "all", "--epochs", "3", "--batch", "4", "--rate", "1e-3"]
    plan = _plan(_parser().parse_args(["real", *words]), sets.PLANS["mre"])
    crowd = tiny_data(N=len(TEXTS))._replace(X=TEXTS)
    data = sets.encoded(crowd, "mre", tiny_encoder(), plan.layers, None)
    start, fit = data.network(), SLEClassifier.fit
    trained: list[Any] = []

    def watched(model, *given, **how):
        trained.append(fit(model, *given, **how))
        return trained[-1]

    monkeypatch.setattr(SLEClassifier, "fit", watched)
    every = np.arange(len(TEXTS))
    real.learn(data._replace(network=lambda: start), "SLE (crowd)", every, every, 0, plan)
    assert len(trained[0].history_) == 3
    before, now = start.state_dict(), trained[0].network_.encoder.state_dict()
    moved = {name for name in now if not torch.equal(now[name], before[name])}
    for layer in ("embeddings.word_embeddings", "layers.0", "layers.1", "layers.2"):
        assert any(name.startswith(f"{layer}.") for name in moved)


# Methods


@pytest.mark.parametrize("method", real.METHODS)
def test_nothing_about_test_items_reaches_training(method, monkeypatch):
    data = tiny_data()
    train, test = data.splits[0]
    seen = []

    def spy(self, X, y, **more):
        seen.append(X)
        return fit(self, X, y, **more)

    fit = SLEClassifier.fit
    monkeypatch.setattr(SLEClassifier, "fit", spy)
    before = real.learn(data, method, train, test, 0, PLAN)
    np.testing.assert_array_equal(seen[0], data.X[train])
    # Whatever is said of test items, the very same is predicted.
    a, hidden = data.annotations, np.isin(data.annotations.item, test)
    other = replace(
        a,
        y=np.where(hidden, (a.y + 1) % 3, a.y),
        uncertainty=np.where(hidden, 1 - a.uncertainty, a.uncertainty),
        stated=np.where(hidden, 0.5, present(a.stated)),
    )
    gold = present(data.gold).copy()
    gold[test] = (gold[test] + 1) % 3
    changed = data._replace(annotations=other, tested=other, gold=gold)
    after = real.learn(changed, method, train, test, 0, PLAN)
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("method", real.METHODS)
def test_every_method_yields_all_its_rows_and_the_same_for_the_same_seed(method, monkeypatch):
    data = tiny_data(silent=4)
    monkeypatch.setattr(real, "_loaded", lambda _, **__: data)
    setting = "uds" if method in real.SOURCES else "rte"
    plans, encoders = {setting: sets.PLANS[setting]}, {setting: "linear"}
    job: Any = real.jobs(plans, encoders, [method], seeds=1, quick=True)[0] | {"seed": 3}
    found = list(real.rows(**job))
    assert found == list(real.rows(**job))
    values = {row["metric"]: row["value"] for row in found}
    assert len(values) == len(found)
    needed = {"macro_f1_gold", "micro_f1_gold", "jsd_root", "nes", "vote_log_loss", "brier_crowd"}
    opinions = method.startswith("SLE") or method == "Votes"
    needed |= {"jsd_root_mode", "nes_mode", "vote_log_loss_dirichlet"} if opinions else {"ece_gold"}
    assert needed <= set(values)
    assert any(name.endswith("_mode") for name in values) == opinions
    assert values["items"] == 40
    assert values["items_crowd"] == 36
    columns = {
        *("experiment", "setting", "annotations", "method", "seed"),
        *("metric", "value", "encoder", "plan", "machine", "made_with"),
    }
    assert all(set(row) == columns for row in found)
    assert {row["plan"] for row in found} == {job["plan"]}
    assert ("KL" in job["plan"]) == method.startswith("SLE")
    assert {(row["setting"], row["method"], row["seed"], row["encoder"]) for row in found} == {
        (setting, method, 3, "linear")
    }


def test_folds_are_scored_together():
    data = tiny_data()
    said = [real.learn(data, "CE", train, test, 0, PLAN) for train, test in data.splits]
    p = np.concatenate([said[1].probability, said[0].probability])
    expected = evaluate(p, data.annotations, data.gold)
    found = real.scores(data, "CE", 0, PLAN)
    assert found == {key: value for key, value in expected.items() if value is not None}


def test_items_that_nobody_annotated_are_learned_from_by_their_gold_label_or_left_out():
    data = tiny_data(silent=2)
    y = np.full((40, 3), 1 / 3)
    known, found = real.filled(y, data.annotations, data.gold)
    assert len(known) == 40
    np.testing.assert_array_equal(found[:2], np.eye(3)[present(data.gold)[:2]])
    np.testing.assert_array_equal(found[2:], y[2:])
    known, found = real.filled(y, data.annotations, None)
    assert known.tolist() == list(range(2, 40))
    u = np.full(40, 0.5)
    u[5] = 1.0
    doubt = Opinion(np.where(u[:, None] < 1, 1 / 6, 0.0) * np.ones(3), u, np.full((40, 3), 1 / 3))
    known, opinions = real.filled(doubt, data.annotations, data.gold)
    assert known.tolist() == [i for i in range(40) if i != 5]  # vacuous: nothing to learn
    np.testing.assert_allclose(opinions.uncertainty[:2], 0.01)
    np.testing.assert_allclose(opinions.uncertainty[2:], 0.5)


def test_methods_with_gold_are_for_data_that_has_it():
    assert real.methods("mre") == real.GOLD + real.CROWD + real.MORE
    assert real.methods("convabuse") == real.CROWD + real.MORE
    assert real.methods("uds") == real.CROWD + real.MORE + real.SOURCES
    with pytest.raises(ValueError, match=r"one of MV, CE.*for uds; 'Gold' came"):
        next(real.rows("real", "uds", "Gold", 0, "tiny", ""))
    with pytest.raises(ValueError, match=r"one of cifar10s, .*; 'imdb' came"):
        sets.load("imdb")


def test_what_measures_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(real.rows)) is real.rows


# The data themselves, where they are


def load_quick(dataset, monkeypatch, tmp_path):
    monkeypatch.setattr(texts, "load_encoder", tiny_encoder)
    monkeypatch.setattr(sets, "CACHE", tmp_path)
    try:
        return sets.load(dataset, quick=True)
    except OSError as missing:
        pytest.skip(f"the files of {dataset} are not here: {missing}")


@pytest.mark.parametrize("dataset", sets.PLANS)
def test_the_data_sets_are_read(dataset, monkeypatch, tmp_path):
    data = load_quick(dataset, monkeypatch, tmp_path)
    assert len(data.X) == len(data.annotations.items) == len(data.tested.items)
    assert (data.gold is None) == (dataset in real.WITHOUT_GOLD)
    for train, test in data.splits:
        assert (len(train), len(test)) == sets.QUICK
        assert not set(train.tolist()) & set(test.tolist())
        assert set(data.tested.item.tolist()) >= set(test.tolist())
    with torch.no_grad():
        features = data.network().eval()(torch.as_tensor(data.X[:2]))
    assert features.shape[0] == 2
