"""The classifier learns from any target, and keeps scikit-learn's rules."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from fitting import (
    assert_same_weights,
    crowd_of,
    one_thread,
    quick,
    rows,
    weights,
)
from torch import nn

from slencodings import Opinion, aggregate, check, encode, from_alpha, fuse_table, smooth
from slencodings.choices import TrainingObjective
from slencodings.datasets.digits_crowd import digits_crowd
from slencodings.metrics import entropy_similarity, jsd
from slencodings.torch import SLEClassifier, losses, training
from slencodings.trust import count_each, learn_crowd

OBJECTIVES = get_args(TrainingObjective)
__all__ = ["one_thread"]


# The rules of scikit-learn


@parametrize_with_checks([SLEClassifier(hidden=(), max_epochs=8, learning_rate=0.1)])
def test_it_keeps_the_rules_of_scikit_learn(estimator, check):
    # the checks assert; that of array API input is skipped unless SCIPY_ARRAY_API is set
    assert check(estimator) is None


def test_it_works_in_a_pipeline_a_grid_search_and_clones():
    X, y = rows(120)
    model = make_pipeline(StandardScaler(), quick(max_epochs=8, learning_rate=0.1, batch_size=16))
    grid = {"sleclassifier__objective": ["reverse_kl", "cross_entropy"]}
    for target in (y, np.eye(3)[y]):
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, target)  # pyright: ignore[reportArgumentType]
        assert search.best_score_ > 0.6
        assert search.predict(X).shape == (120,)
    assert_same_weights(*(clone(quick()).fit(X, y) for _ in range(2)))


def test_opinions_in_a_table_can_be_split_by_a_grid_search():
    X, y = rows(60)
    said = crowd_of(y)
    table = fuse_table(
        pd.DataFrame({"item": said.item, "label": [f"k{k}" for k in said.y]}),
        item="item",
        label="label",
    )
    grid = {"learning_rate": [0.001, 0.03]}
    search = GridSearchCV(quick(max_epochs=10), grid, cv=2, error_score="raise").fit(X, table)  # pyright: ignore[reportArgumentType]
    assert search.best_params_ == {"learning_rate": 0.03}
    assert search.best_estimator_.classes_.tolist() == ["k0", "k1", "k2"]


def test_a_clone_has_an_encoder_of_its_own_and_the_one_given_stays():
    X, y = rows()
    encoder = nn.Linear(4, 5)
    before = encoder.weight.detach().clone()
    model = quick(encoder=encoder).fit(X, y)
    assert torch.equal(encoder.weight, before)
    assert not torch.equal(model.network_.encoder.weight, before)
    assert clone(model).encoder is not encoder
    assert torch.equal(clone(model).encoder.weight, before)


def test_the_same_seed_gives_the_same_weights_and_others_keep_their_random_numbers():
    X, y = rows()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    models = [quick(random_state=s).fit(X, y) for s in (0, 0, 1)]
    assert torch.equal(torch.rand(3), expected)
    assert_same_weights(models[0], models[1])
    assert not np.array_equal(models[0].predict_proba(X), models[2].predict_proba(X))


def test_nothing_is_printed_where_nobody_watches(capfd):
    quick(verbose=True).fit(*rows())
    assert capfd.readouterr() == ("", "")


# It learns


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_can_learn_20_rows_by_heart(objective):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 8)), rng.integers(0, 3, 20)
    said = crowd_of(y, per_item=5)
    gold = y if objective == "mtlsl" else None
    epochs = 400 if objective in ("reverse_kl", "forward_kl") else 200
    how = {"hidden": (128,), "learning_rate": 4 / epochs, "max_epochs": epochs}
    model = quick(objective=objective, **how)
    opinion = model.fit(X, said, gold=gold).predict_opinion(X)
    shares = said.sums() / 5
    if objective in ("reverse_kl", "forward_kl"):
        target = aggregate.sle(said)
        np.testing.assert_allclose(opinion.belief, target.belief, atol=0.05)
        np.testing.assert_allclose(opinion.uncertainty, target.uncertainty, atol=0.05)
    elif objective == "mtlsl":
        np.testing.assert_array_equal(model.predict(X), y)
    elif objective == "votes":
        # a Dirichlet that fits five votes keeps some of the prior where they disagree
        np.testing.assert_array_equal(opinion.probability.argmax(axis=1), shares.argmax(axis=1))
        assert jsd(shares, opinion.probability).mean() < 0.01
    else:
        np.testing.assert_allclose(opinion.probability, shares, atol=0.03)


def opinions_of(X):
    """Evidence that grows smoothly with the features, and doubt where it is little."""
    evidence = np.exp(1.5 * np.stack([X[:, 0], X[:, 1], -X.sum(axis=1)], axis=1))
    return from_alpha(evidence + 2 / 3)


@pytest.mark.parametrize("objective", ["reverse_kl", "forward_kl"])
def test_a_known_function_to_opinions_is_recovered(objective):
    X = np.random.default_rng(0).uniform(-1, 1, (700, 2))
    model = SLEClassifier(objective=objective, hidden=(32,), learning_rate=0.03, max_epochs=30,
                          random_state=0).fit(X[:500], opinions_of(X[:500]))  # fmt: skip
    got, truth = check(model.predict_opinion(X[500:])), opinions_of(X[500:])
    assert np.abs(got.belief - truth.belief).mean() < 0.01
    assert np.abs(got.uncertainty - truth.uncertainty).mean() < 0.01


def read_both_ways(seed):
    """JSD and NES to the truth: ours believed and projected, soft labels believed and projected."""
    crowded = digits_crowd(rng=seed, confidence=(2, 4), reliability=(4, 4))
    order = np.random.default_rng(0).permutation(1797)
    train, test = order[:1200], order[1200:]
    said, truth = crowded.annotations, crowded.truth[test]
    how = {"random_state": seed, "max_epochs": 20, "learning_rate": 0.01}
    ours = SLEClassifier(reliability=crowded.reliability, **how)
    soft = SLEClassifier(objective="cross_entropy", **how)
    for model in (ours, soft):
        model.fit(crowded.X[train], said, items=said.items[train])
        opinion = model.predict_opinion(crowded.X[test])
        for p in (opinion.mode, opinion.probability):
            yield jsd(truth, p).mean(), entropy_similarity(truth, p)


def test_on_a_doubtful_crowd_belief_is_nearer_the_truth_than_soft_labels_and_projection_is_not():
    believed, projected, soft_believed, soft = read_both_ways(seed=0)
    # The truth is nearly one-hot, so whatever is sharp is near: a majority vote is nearer than all
    # of these. docs/training.md has the figures, of five seeds.
    assert believed[0] < min(soft[0], soft_believed[0])
    assert believed[1] > soft[1]
    assert projected[0] > soft[0]
    assert projected[1] < soft[1]


def test_a_hundred_epochs_are_no_worse_than_ten_on_votes_of_others():
    crowded = digits_crowd(rng=0, per_item=2)
    said = crowded.annotations
    train, test = np.arange(200), np.arange(500, 1000)

    def loss(**how):
        model = SLEClassifier(learning_rate=0.01, random_state=0, **how)
        model.fit(crowded.X[train], said, items=said.items[train])
        p = model.predict_proba(crowded.X[test])
        votes = np.isin(said.item, test)
        return -np.log(p[said.item[votes] - 500, said.y[votes]]).mean(), len(model.history_)

    (short, _), (stopped, epochs), (long, _) = (
        loss(max_epochs=10),
        loss(max_epochs=100),
        loss(max_epochs=100, validation=0.0),
    )
    assert stopped < short + 0.02
    assert stopped < long - 0.05
    assert epochs < 100


# A tenth of the items, or as many as have 200 votes, or nearly a third.
@pytest.mark.parametrize(("per_item", "items_held_out"), [(24, 12), (12, 25), (4, 36)])
def test_votes_held_out_are_scored_each_the_same(per_item, items_held_out, monkeypatch):
    X, y = rows(120)
    said = crowd_of(y, per_item=per_item)
    uneven = said.rows(np.random.default_rng(0).random(len(said.item)) < 0.7)
    held_out, evaluate = [], training._evaluate

    def spy(network, loss, taken, plan):
        held_out.append(taken.numpy())
        return evaluate(network, loss, taken, plan)

    monkeypatch.setattr(training, "_evaluate", spy)
    model = quick(max_epochs=1, batch_size=7).fit(X, uneven)
    items = np.unique(uneven.item)[held_out[0]]
    assert len(items) == items_held_out
    of_them = np.isin(uneven.item, items)
    p = model.predict_proba(X)[uneven.item[of_them], uneven.y[of_them]]
    assert model.history_[0]["validation_loss"] == pytest.approx(-np.log(p).mean(), rel=1e-5)


def test_held_out_rows_stop_training_and_the_best_weights_are_kept(monkeypatch):
    X, noise = rows(60)[0], np.random.default_rng(0).integers(0, 3, 60)
    seen, evaluate = [], training._evaluate

    def spy(network, *rest):
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        return evaluate(network, *rest)

    monkeypatch.setattr(training, "_evaluate", spy)
    model = quick(validation=0.5, patience=3, max_epochs=200, learning_rate=0.05).fit(X, noise)
    losses = [row["validation_loss"] for row in model.history_]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 3
    for name, tensor in weights(model).items():
        np.testing.assert_array_equal(seen[best][name].numpy(), tensor)


def test_the_forward_kl_comes_after_the_reverse_and_is_what_rows_are_held_out_for(monkeypatch):
    seen, kl_loss = [], losses.kl_loss

    def spy(*opinions, direction, **how):
        seen.append(direction)
        return kl_loss(*opinions, direction=direction, **how)

    monkeypatch.setattr(losses, "kl_loss", spy)
    quick(objective="forward_kl", max_epochs=10).fit(*rows())
    assert seen == ["reverse"] * 3 + ["forward"] * 7
    model = quick(objective="forward_kl", max_epochs=10, validation=0.5, patience=1).fit(*rows())
    assert ["validation_loss" in row for row in model.history_[:4]] == [False] * 3 + [True]


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_learning_rate_follows_its_schedule(schedule, monkeypatch):
    seen, step = [], torch.optim.AdamW.step

    def spy(self, *rest):
        seen.append(self.param_groups[0]["lr"])
        return step(self, *rest)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    quick(schedule=schedule, max_epochs=4, batch_size=20, learning_rate=0.1).fit(*rows(40))
    done = np.arange(8) / 8
    expected = 0.1 * np.cos(np.pi * done / 2) ** 2 if schedule == "cosine" else np.full(8, 0.1)
    np.testing.assert_allclose(seen, expected)


# Targets of every kind


def test_annotations_are_encoded_inside():
    X, y = rows()
    said, r = crowd_of(y), np.asarray([0.9, 0.5, 0.2])
    encoded = aggregate.sle(said, reliability=r, smoothing=0.1)
    inside = quick(reliability=r, smoothing=0.1).fit(X, said)
    assert_same_weights(inside, quick(smoothing=0.1).fit(X, encoded))
    learned = learn_crowd(said).votes(said)
    assert_same_weights(quick(reliability="learned").fit(X, said), quick().fit(X, learned))
    alone = said.rows(said.annotator == 0)  # Where nothing can be learned, each is one count.
    counted = count_each(alone).votes(alone)
    assert_same_weights(quick(reliability="learned").fit(X, alone), quick().fit(X, counted))


def test_opinions_may_be_tensors():
    X, y = rows()
    target = aggregate.sle(crowd_of(y))
    tensors = Opinion(*(torch.tensor(x, requires_grad=True) for x in target))
    assert_same_weights(quick().fit(X, tensors), quick().fit(X, target))


def test_labels_are_one_hot_distributions_with_a_little_doubt():
    X, y = rows()
    names = np.asarray(["no", "perhaps", "yes"])
    hard = quick(smoothing=0.05).fit(X, names[y])
    assert_same_weights(hard, quick(smoothing=0.05).fit(X, np.eye(3)[y]))
    assert_same_weights(hard, quick().fit(X, smooth(encode(np.eye(3)[y]), 0.05)))
    assert hard.classes_.tolist() == names.tolist()
    assert set(hard.predict(X)) <= set(names)
    soft = quick(objective="cross_entropy")
    assert_same_weights(clone(soft).fit(X, y), clone(soft).fit(X, np.eye(3)[y]))
    assert_same_weights(
        quick(objective="votes").fit(X, y), quick(objective="votes").fit(X, np.eye(3)[y])
    )


def test_rows_find_their_targets_by_name():
    X, y = rows()
    said = crowd_of(y)
    part = np.random.default_rng(1).permutation(40)[:25]
    by_name = quick().fit(X[part], said, items=said.items[part])
    assert_same_weights(by_name, quick().fit(X[part], aggregate.sle(said).rows(part)))
    right = said.sums()[part].argmax(axis=1) == by_name.predict(X[part])
    assert by_name.score(X[part], said, items=said.items[part]) == right.mean()


def test_items_that_nobody_labelled_are_left_out():
    X, y = rows()
    said = crowd_of(y)
    kept = said.item >= 10
    some = replace(said, item=said.item[kept], annotator=said.annotator[kept], y=said.y[kept],
                   uncertainty=said.uncertainty[kept])  # fmt: skip
    for objective in ("reverse_kl", "cross_entropy", "votes"):
        all_rows = quick(objective=objective).fit(X, some)
        rest = quick(objective=objective).fit(X[10:], some, items=some.items[10:])
        assert_same_weights(all_rows, rest)
    # trusted by nobody is the same as not labelled
    r = np.where(some.item < 20, 0.0, 1.0)
    rest = quick().fit(X[20:], aggregate.sle(some).rows(np.arange(20, 40)))
    assert_same_weights(quick(reliability=r).fit(X, some), rest)


def test_a_vacuous_opinion_is_a_target_like_any_other():
    X, _ = rows()
    vacuous = encode(np.eye(3)[np.zeros(40, dtype=int)], np.ones(40))
    model = quick(max_epochs=60, learning_rate=0.03).fit(X, vacuous)
    assert model.predict_opinion(X).uncertainty.min() > 0.95


def test_the_base_rate_of_the_targets_is_that_of_the_predictions():
    X, y = rows()
    a = np.asarray([0.7, 0.2, 0.1])
    model = quick().fit(X, aggregate.sle(crowd_of(y), base_rate=a))
    np.testing.assert_allclose(model.predict_opinion(X).base_rate, np.tile(a, (40, 1)), rtol=1e-6)


def test_score_is_accuracy_against_the_most_probable_label():
    X, y = rows()
    model = quick(max_epochs=20).fit(X, y)
    right = model.predict(X) == y
    weight = np.random.default_rng(0).random(40)
    assert model.score(X, y) == right.mean()
    assert model.score(X, y, weight) == pytest.approx(np.average(right, weights=weight))
    assert model.score(X, np.eye(3)[y] * 0.8 + 0.2 / 3) == right.mean()
    assert model.score(X, smooth(encode(np.eye(3)[y]), 0.5)) == right.mean()


# Encoders


def test_any_module_may_encode_images():
    X = np.random.default_rng(0).normal(size=(30, 1, 6, 6))
    y = (X[:, 0, :3].mean(axis=(1, 2)) > X[:, 0, 3:].mean(axis=(1, 2))).astype(int)
    encoder = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    # 30 rows in batches of 29 would leave a batch of one
    model = quick(encoder=encoder, batch_size=29, max_epochs=40, learning_rate=0.02).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(
        ValueError, match=r"shape of those trained on, \[1, 6, 6\]; \[1, 6, 7\] came"
    ):
        model.predict(np.zeros((2, 1, 6, 7)))


def test_whole_numbers_stay_whole_for_an_encoder():
    X = np.random.default_rng(0).integers(0, 5, (40, 3))
    encoder = nn.Sequential(nn.Embedding(5, 4), nn.Flatten())
    model = quick(encoder=encoder, max_epochs=40, learning_rate=0.05).fit(X, (X[:, 0] > 2) * 1)
    assert model.score(X, (X[:, 0] > 2) * 1) > 0.9


def test_frozen_weights_stay_as_they_were():
    X, y = rows()
    encoder = nn.Linear(4, 5).requires_grad_(False)
    model = quick(encoder=encoder).fit(X, y)
    assert torch.equal(model.network_.encoder.weight, encoder.weight)
