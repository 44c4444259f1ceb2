"""Rivals of rounds, and the crowds that they are measured on."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fitting import one_thread, quick
from test_rounds import digit_like, few_trials, one_vote_each
from tiny_experiments import TEXTS, tiny_data, tiny_encoder
from torch import nn

from experiments import data as sets
from experiments import network_tables, rounds, tables, texts
from experiments.__main__ import main
from experiments.rivals import crowd_layer, raykar
from experiments.rows import FOLDER, read
from slencodings.annotations import Annotations

__all__ = ["few_trials", "one_thread"]


def test_joint_em_and_a_layer_of_annotators_find_truth_behind_noisy_votes():
    X, crowd, truth = digit_like()
    X = X.astype(np.float32)
    votes = np.mean(crowd.y == truth)
    how = {"max_epochs": 20, "learning_rate": 0.05}

    def make():
        return quick(objective="cross_entropy", hidden=(), **how)

    layered = crowd_layer(nn.Identity(), 4, X, crowd, **how)
    for found in (raykar(make, X, crowd), layered):
        p = found.predict(X)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(found.truth.sum(axis=1), 1, atol=1e-5)
        assert np.mean(found.truth.argmax(axis=1) == truth) > votes
        assert np.mean(p.argmax(axis=1) == truth) > votes
        assert found.hear is not None
        heard = found.hear(p)
        np.testing.assert_allclose(heard.sum(axis=1), 1, atol=1e-5)
        # What is true is not what people say.
        log_loss = [-np.mean(np.log(of[crowd.item, crowd.y])) for of in (heard, p)]
        assert log_loss[0] < log_loss[1]


def test_a_layer_of_annotators_tells_apart_one_who_turns_labels_around():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    X = (2.0 * truth[:, None] - 1 + rng.normal(size=(400, 2))).astype(np.float32)
    who = np.repeat([0, 0, 1], [200, 100, 100])[rng.permutation(400)]
    said = np.where(who == 1, 1 - truth, truth)
    crowd = Annotations(
        np.arange(400), who, said, np.zeros(400), np.arange(400), np.arange(2), np.arange(2)
    )
    found = crowd_layer(nn.Identity(), 2, X, crowd, max_epochs=40, learning_rate=0.01)
    right = np.mean(found.truth.argmax(axis=1) == truth)
    # Nothing in the layer says which label is which, and two may be exchanged throughout.
    assert max(right, 1 - right) > 0.85


def test_a_crowd_is_cut_to_so_many_annotations_an_item():
    crowd = rounds.digits(0).annotations
    for n in (1, 3):
        few = rounds.cut(crowd, n, np.random.default_rng(0))
        assert set(np.bincount(few.item, minlength=len(crowd.items))) == {n}
    assert len(rounds.cut(crowd, 9, np.random.default_rng(0)).item) == len(crowd.item)


@pytest.mark.usefixtures("few_trials")
def test_the_confused_make_mistakes_that_others_make_too():
    problem = rounds.confused(0)
    said, gold = problem.annotations, problem.gold
    who = said.annotator.reshape(-1, 3)
    assert all(len(set(people)) == 3 for people in who.tolist())
    wrong = said.y != gold[said.item]
    assert 0.25 < np.mean(wrong) < 0.4
    taken_for = np.zeros((8, 8))
    np.add.at(taken_for, (gold[said.item][wrong], said.y[wrong]), 1)
    commonest = taken_for.max(axis=1) / taken_for.sum(axis=1)
    assert np.mean(commonest) > 0.2  # .14 if mistakes were spread evenly, one of seven
    assert not set(problem.train.tolist()) & set(problem.test.tolist())


@pytest.mark.parametrize("method", rounds.METHODS)
def test_every_method_is_scored_on_targets_and_new_items(method):
    X, crowd, truth = digit_like(N=100)
    problem = rounds.Problem(X.astype(np.float32), crowd, truth, np.arange(80), np.arange(80, 100))
    found = rounds.scores(problem, 1, method, 0, rounds.Plan(2, 0.01))
    votes = {"vote log-loss"} | (set() if " on " in method else {"heard log-loss"})
    assert set(found) == {"targets", "network", "log-loss"} | votes
    without = problem._replace(gold=np.full(100, -1))
    assert set(rounds.scores(without, 1, method, 0, rounds.Plan(1, 0.01))) == votes


def test_a_method_of_another_name_is_refused():
    crowd, _ = one_vote_each(N=40)
    with pytest.raises(ValueError, match=r"`method` must be one of CE on votes, .*; 'MV' came"):
        rounds.learn("MV", np.zeros((40, 2), dtype=np.float32), crowd, rounds.Plan(1, 0.1), 0)


@pytest.fixture
def tiny_texts(monkeypatch, tmp_path):
    """A few texts in place of a crowd's, seen by a tiny encoder."""

    def use(name, N):
        some = [TEXTS[i % len(TEXTS)] for i in range(N)]
        X = [(text, "the", 1) for text in some] if name == "uds" else some
        data = tiny_data(N=N, gold=name == "mre")._replace(X=X)
        monkeypatch.setattr(sets, "raw_texts", {name: data}.__getitem__)

    monkeypatch.setattr(sets, "CACHE", tmp_path)
    monkeypatch.setattr(texts, "load_encoder", tiny_encoder)
    rounds.sentence_features.cache_clear()
    yield use
    rounds.sentence_features.cache_clear()


@pytest.mark.parametrize("name", ["mre", "uds"])
def test_texts_are_seen_by_an_encoder_that_is_not_trained(name, tiny_texts):
    tiny_texts(name, N=len(TEXTS))
    found = rounds.sentences(name, 0)
    # Beside the whole of the text, the word that is asked about.
    size = tiny_encoder().model.config.hidden_size
    assert found.X.shape == (len(TEXTS), 2 * size if name == "uds" else size)
    assert found.network is None
    assert sorted([*found.train, *found.test]) == list(range(len(TEXTS)))
    assert np.all(found.gold >= 0) == (name == "mre")


@pytest.mark.parametrize("method", ["SLE on votes", "CrowdLayer", "CE in rounds"])
def test_where_the_name_says_so_the_top_layer_is_trained(method, tiny_texts, monkeypatch):
    tiny_texts("mre", N=50)
    problem = rounds.sentences("mre_trained", 0)
    assert problem.X.ndim == 3  # texts by tokens by their states below the top layer
    network = problem.network
    assert network is not None
    before = [weights.clone() for weights in network().parameters()]
    made = []
    problem = problem._replace(network=lambda: made.append(network()) or made[-1])
    found = rounds.scores(problem, None, method, 0, rounds.Plan(1, 0.01, 8))
    assert made
    assert np.isfinite(list(found.values())).all()
    # The next network begins where this one did.
    for weights, then in zip(before, network().parameters(), strict=True):
        torch.testing.assert_close(weights, then, rtol=0, atol=0)


def test_some_numbers_of_annotations_are_tried_alone_and_others_are_refused(tmp_path):
    some = rounds.jobs(["uds", "digits"], ["CE on votes"], 1, annotations=[2, 5])
    assert [(job["setting"], job["annotations"]) for job in some] == [
        ("uds", "2"),
        ("digits", "2"),
        ("digits", "5"),
    ]
    with pytest.raises(SystemExit, match=r"--annotations must be some of .*; \[7\] came"):
        main(["rounds", "--annotations", "7", "--rows", str(tmp_path / "r.parquet")])


def test_the_document_says_what_the_rows_say():
    rows = read(FOLDER / "rounds.parquet")
    text = (tables.DOCS / "training.md").read_text(encoding="utf-8")
    for name in rows["setting"].unique():
        assert tables.markdown(network_tables.rounds_table(rows, name)) in text


def test_features_of_images_are_of_a_network_that_never_saw_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 255, (24, 32, 32, 3), dtype=np.uint8), np.arange(24) % 3
    annotated, seen = np.asarray([1, 4, 9]), []

    class Watched(rounds.SLEClassifier):
        def fit(self, X, y, **more):
            seen.append((X, y))
            return super().fit(X, y, **more)

    pictures = SimpleNamespace(test_images=images, test_labels=labels)
    monkeypatch.setattr(rounds.datasets, "cifar10_images", lambda: pictures)
    monkeypatch.setattr(rounds.datasets, "cifar10s", lambda: SimpleNamespace(X=annotated))
    monkeypatch.setattr(rounds, "SLEClassifier", Watched)
    monkeypatch.setattr(
        rounds, "resnet32a", lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 5))
    )
    monkeypatch.setitem(sets.PLANS, "cifar10s", sets.Plan(None, 1, 8, 1e-3))
    monkeypatch.setattr(sets, "CACHE", tmp_path / "kept")
    for _ in range(2):
        rounds.image_features.cache_clear()
        found = rounds.image_features()
        assert found.shape == (3, 5)
        assert np.isfinite(found).all()
    rounds.image_features.cache_clear()
    ((X, y),) = seen  # the second time it was kept
    rest = np.delete(np.arange(24), annotated)
    np.testing.assert_array_equal(X, sets.scaled(images[rest]))
    np.testing.assert_array_equal(y, labels[rest])
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["cifar10s-resnet32a.npy"]


def test_kept_rounds_are_no_worse_than_one_round_but_for_those_told_of():
    kept = {
        (row["setting"], row["annotations"], row["seed"], row["method"], row["metric"]): row[
            "value"
        ]
        for row in read(FOLDER / "rounds.parquet").iter_rows(named=True)
    }
    compared, worse = {"heard log-loss": 0, "log-loss": 0}, []
    for (*run, method, metric), value in kept.items():
        if method.endswith(" in rounds") and metric in compared:
            alone = metric.replace("heard", "vote")
            compared[metric] += 1
            if value > kept[*run, method.replace("in rounds", "on votes"), alone] + 1e-9:
                worse.append((*run, method, metric))
    assert compared == {"heard log-loss": 162, "log-loss": 114}
    # The document tells of these: ConvAbuse by a trained network, and MRE.
    told = [
        ("convabuse_trained", "2", 2, "CE in rounds", "heard log-loss"),
        ("convabuse_trained", "2", 2, "SLE in rounds", "heard log-loss"),
        ("convabuse_trained", "3", 1, "CE in rounds", "heard log-loss"),
        ("convabuse_trained", "3", 2, "CE in rounds", "heard log-loss"),
        ("convabuse_trained", "3", 2, "SLE in rounds", "heard log-loss"),
        ("mre", "2", 1, "SLE in rounds", "heard log-loss"),
        ("mre", "2", 1, "SLE in rounds", "log-loss"),
        ("mre", "2", 2, "CE in rounds", "log-loss"),
        ("mre_trained", "3", 2, "CE in rounds", "log-loss"),
    ]
    assert sorted(worse) == told


def test_the_document_shows_the_rates_that_were_tried_with_every_loss_and_seed():
    rows = read(FOLDER / "rates.parquet")
    heads, cells = network_tables.rates_table(rows)
    assert len(heads) > 2
    text = (tables.DOCS / "training.md").read_text(encoding="utf-8")
    assert tables.markdown((heads, cells)) in text
    # One run less, and its rate is not shown.
    rate = heads[1].removeprefix("rate ")
    gone = (rows["setting"] == rate) & (rows["seed"] == 0) & (rows["method"] == "reverse KL")
    assert heads[1] not in network_tables.rates_table(rows.filter(~gone))[0]
