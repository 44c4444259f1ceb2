"""A network as one more source of targets, in Python and as `sle encode --features`."""

import json
from pathlib import Path

import numpy as np
import pytest
from fitting import one_thread
from running import Sle
from sklearn.base import BaseEstimator
from test_rounds import digit_like, small

from slencodings import Opinion, check
from slencodings.files.encode import encode_file
from slencodings.files.job import Known
from slencodings.tables.fuse import Fusing
from slencodings.torch import truth_with_network, votes_with_network
from slencodings.trust import count_each, learn_crowd

__all__ = ["one_thread"]


class Oracle(BaseEstimator):
    """A network that has read what it will say in its features, whatever it is taught."""

    def __init__(self, labels=None, reliability=None):
        self.labels = labels
        self.reliability = reliability

    def fit(self, X, y):
        self.taught_ = len(X)
        return self

    def predict_proba(self, X):
        return X


def two_votes_each(N=80, K=3, right=0.7, seed=0):
    """A crowd with two annotations an item but for the last ten, which have none; and the truth."""
    from slencodings.annotations import Annotations

    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, N)
    item = np.repeat(np.arange(N - 10), 2)
    said = np.where(rng.random(len(item)) < right, truth[item], rng.integers(0, K, len(item)))
    who = np.tile([0, 1], N - 10)
    names = np.asarray([f"item-{i}" for i in range(N)], dtype=object)
    crowd = Annotations(item, who, said, np.zeros(len(item)), names, np.arange(2), np.arange(K))
    return crowd, truth


# Arrays


def test_a_network_makes_labels_right_that_single_votes_have_wrong():
    X, crowd, truth = digit_like()
    model = small(objective="cross_entropy")
    votes = np.mean(crowd.y == truth)
    found = votes_with_network(model, X, crowd, count_each(crowd))
    check(found.opinion)
    assert found.worth > 0
    assert np.mean(found.opinion.probability.argmax(axis=1) == truth) > votes + 0.15


def test_votes_are_fused_with_the_networks_opinion_by_its_worth():
    crowd, truth = two_votes_each()
    p = np.where(truth[:, None] == np.arange(3), 0.9, 0.05)
    learned = learn_crowd(crowd)
    found = votes_with_network(Oracle(), p, crowd, learned)
    w, said = found.worth, learned.votes(crowd)
    assert w > 0
    assert found.losses[1] < found.losses[0]
    # Evidence adds up, and where nobody spoke it is the network's alone.
    for opinion, evidence in ((found.opinion, said.belief / said.uncertainty[:, None] + w * p),):
        u = 1 / (1 + evidence.sum(axis=1))
        np.testing.assert_allclose(opinion.uncertainty, u)
        np.testing.assert_allclose(opinion.belief, u[:, None] * evidence)
    np.testing.assert_allclose(found.opinion.belief[-10:], w / (1 + w) * p[-10:])
    np.testing.assert_allclose(found.opinion.base_rate, said.base_rate)


@pytest.mark.parametrize("reading", ["votes", "truth"])
def test_a_network_that_misleads_is_not_used_and_nothing_changes(reading):
    crowd, _ = two_votes_each(N=130)
    wrong = np.random.default_rng(3).dirichlet(np.full(3, 0.1), 130)
    learned = learn_crowd(crowd)
    helper = votes_with_network if reading == "votes" else truth_with_network
    found = helper(Oracle(), wrong, crowd, learned)
    assert found.worth == 0
    expected = learned.votes(crowd) if reading == "votes" else learned.truth(crowd)
    for came, plain in zip(found.opinion, expected, strict=True):
        np.testing.assert_allclose(came, plain, atol=1e-12)


def test_networks_are_taught_by_items_that_they_are_not_asked_about(monkeypatch):
    crowd, truth = two_votes_each()
    p = np.where(truth[:, None] == np.arange(3), 0.9, 0.05) + 1e-6 * np.arange(80)[:, None]
    taught, asked, counted = [], [], []
    monkeypatch.setattr(Oracle, "fit", lambda self, X, y: taught.append(X[:, 0]) or self)
    monkeypatch.setattr(Oracle, "predict_proba", lambda self, X: asked.append(X[:, 0]) or X)
    learned = learn_crowd(crowd)
    votes_with_network(Oracle(), p, crowd, learned, progress=lambda *now: counted.append(now))
    assert [len(set(x) & set(y)) for x, y in zip(taught, asked, strict=True)] == [0] * 4
    assert sum(map(len, asked)) == 80
    assert counted == [(n, 4) for n in (1, 2, 3, 4)]


# Files


def known(N=4):
    b = np.asarray([[0.5, 0.3], [0.0, 0.0], [0.2, 0.8], [0.1, 0.0]])
    items = np.asarray(["p", "q", "r", "s"], dtype=object)
    return Known(items, Opinion(b, 1 - b.sum(axis=1), np.tile([0.25, 0.75], (N, 1))))


@pytest.fixture
def here(here):
    rows = [
        f"{i},{who},{'no' if (int(i) + who) % 3 else 'yes'}" for i in range(20) for who in (1, 2)
    ]
    Path("crowd.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    return here


@pytest.mark.parametrize("form", ["wide", "long", "lists", "weights"])
def test_what_is_known_besides_is_written_in_every_form(here, form):
    asked = []

    def also(annotations, crowd):
        asked.append((len(annotations.items), crowd.labels.tolist()))
        return known()

    about = encode_file("crowd.csv", "out.jsonl", fusing=Fusing(form=form), also=also)
    assert asked == [(20, ["no", "yes"])]
    assert about["reading"] == "votes"
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    items, opinion = known()
    P = opinion.probability
    if form == "wide":
        found = [[row[f"belief_{k}"] for k in ("no", "yes")] for row in rows]
        np.testing.assert_allclose(found, opinion.belief, atol=1e-12)
        np.testing.assert_allclose([row["uncertainty"] for row in rows], opinion.uncertainty)
    elif form == "lists":
        np.testing.assert_allclose([row["probability"] for row in rows], P)
    else:
        value = "probability" if form == "long" else "weight"
        cells = {(row["item"], row["label"]): row[value] for row in rows}
        # In the long form what nobody believes has no row, and who knows nothing one without label.
        named = opinion.belief > 0 if form == "long" else P > 0
        expected = {
            (items[i], label): P[i, k]
            for i in range(4)
            for k, label in enumerate(("no", "yes"))
            if named[i, k]
        }
        silent = {("q", None): None} if form == "long" else {}
        assert cells.keys() == expected.keys() | silent.keys()
        assert {key: cells[key] for key in expected} == pytest.approx(expected)


def test_what_is_known_besides_needs_a_crowd_that_was_learned(here):
    with pytest.raises(ValueError, match=r"weighed as stated; weigh='stated' came"):
        encode_file("crowd.csv", "o.csv", fusing=Fusing(weigh="stated"), also=lambda *_: known())


# The command


@pytest.fixture
def features(sle: Sle, monkeypatch):
    """A crowd of single votes on 150 items that features tell apart, and 60 more without votes."""
    X, crowd, truth = digit_like(N=210)
    names = [f"i{n:03d}" for n in range(210)]
    rows = [f"{names[i]},{crowd.annotator[i]},{crowd.y[i]}" for i in range(150)]
    Path("one.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    np.savez("X.npz", item=names[2:], X=X[2:])
    monkeypatch.setattr("slencodings.cli.models.classifier", lambda **how: small(**how))
    return truth


@pytest.mark.parametrize("reading", ["votes", "truth"])
def test_items_without_annotations_get_targets_from_a_shell(sle: Sle, features, reading):
    run = sle("encode", "one.csv", "-o", "t.jsonl", "--features", "X.npz", "--reading", reading)
    assert run.code == 0
    assert "network  one more source, " in run.err
    assert "note     60 items of X.npz without annotations: the network's opinion\n" in run.err
    assert "note     2 items without features, by people alone\n" in run.err
    rows = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == [f"i{n:03d}" for n in range(210)]
    P = np.asarray([[row[f"probability_{k}"] for k in range(3)] for row in rows])
    assert np.mean(P[150:].argmax(axis=1) == features[150:]) > 0.7


def test_a_network_that_does_not_help_is_told(sle: Sle, features, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez("noise.npz", item=[f"i{n:03d}" for n in range(151)], X=rng.normal(size=(151, 3)))
    monkeypatch.setattr("slencodings.torch.rounds._WORTHS", (0.0,))
    run = sle("encode", "one.csv", "-o", "t.csv", "--features", "noise.npz")
    assert "network  not used: held-out votes are predicted no better with it\n" in run.err
    assert "note     1 item of noise.npz without annotations: vacuous ones\n" in run.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "t"], "it is for `--features FILE`"),
        (["--features", "X.npz", "--weigh", "stated"], "it is for `--weigh learned`"),
        (["--features", "X.npz", "--into", "s.parquet"], "it is not for `--features`"),
        (["--features", "X.npz", "--encoder", "e"], "reads a column of text; none is named"),
    ],
)
def test_options_that_do_not_go_with_features_are_refused(sle: Sle, features, words, message):
    run = sle("encode", "one.csv", "-o", "t.csv", *words)
    assert run.code != 0
    assert message in " ".join(run.err.replace("│", " ").split())
