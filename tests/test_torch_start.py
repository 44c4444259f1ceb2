"""Where networks begin: at the mean target, with gradients of the size of cross-entropy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_close

from slencodings import Opinion, encode

torch = pytest.importorskip("torch")
from slencodings.torch import (
    OpinionHead,
    SLEClassifier,
    classifier,
    kl_loss,
    opinion_from_logits,
    start_at,
)


def told(us, K, n=256, seed=0, kind="one label", base_rate=None):
    """Targets of any of these uncertainties; what is believed is of one of the `BELIEFS`."""
    rng = np.random.default_rng(seed)
    y = BELIEFS[kind](K, n, rng)
    b, u, a = encode(y, rng.choice(us, n))
    return Opinion(b, u, a if base_rate is None else np.tile(base_rate, (n, 1)))


# Shares of labels (n, K): votes that agree, that differ, many labels at once, and all alike.
BELIEFS = {
    "one label": lambda K, n, rng: np.eye(K)[rng.integers(0, K, n)],
    "two labels": lambda K, n, rng: np.eye(K)[rng.integers(0, K, (n, 2))].mean(axis=1),
    "few labels": lambda K, n, rng: rng.dirichlet(np.full(K, 0.1), n),
    "many labels": lambda K, n, rng: rng.dirichlet(np.ones(K), n),
    "all alike": lambda K, n, _: np.full((n, K), 1 / K),
}


def skewed(kind, K):
    """A base rate: the n-th label is 1 / n as common as the first; or one has .9 of all."""
    a = 1 / np.arange(1.0, K + 1) if kind == "1 / n" else np.append(9 * (K - 1), np.ones(K - 1))
    return None if kind == "even" else a / a.sum()


def network(head):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), head(64))


def size_of_gradient(network, loss):
    network.zero_grad()
    loss.backward()
    return math.sqrt(sum(float((p.grad**2).sum()) for p in network.parameters()))


def gradients(target, **how):
    """The size of the first gradient of a small network: of a KL, of cross-entropy to its mean."""
    K, base_rate = target.belief.shape[1], target.base_rate[0]
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))
    ours, usual = (
        network(lambda size: OpinionHead(size, K, base_rate=base_rate)),
        network(lambda n: torch.nn.Linear(n, K)),
    )
    start_at(ours[-1].linear, target)  # pyright: ignore[reportArgumentType]
    opinion = Opinion(*(torch.tensor(part) for part in target))
    kl = size_of_gradient(ours, kl_loss(ours(x), opinion, **how))
    soft = torch.nn.functional.cross_entropy(usual(x), opinion.probability)
    return kl, size_of_gradient(usual, soft)


MIXED = [1e-4, 0.01, 0.1, 0.5, 0.9, 0.999]
TARGETS = [[1e-4], [0.01], [0.5], [0.999], [1e-4, 0.999], [1e-4, 0.5], [0.01, 0.999], MIXED]
FEWER = [TARGETS[0], *TARGETS[4:6], MIXED]


@pytest.mark.parametrize("K", [2, 10, 11, 100, 1000])
@pytest.mark.parametrize("us", TARGETS)
def test_the_first_gradient_is_twice_that_of_cross_entropy_at_most_where_one_label_is_believed(
    us, K
):
    kl, cross_entropy = gradients(told(us, K))
    assert kl < 2 * cross_entropy


@pytest.mark.parametrize("K", [2, 10, 100, 1000])
@pytest.mark.parametrize("us", FEWER)
@pytest.mark.parametrize("rate", ["even", "1 / n", "one label"])
@pytest.mark.parametrize("kind", list(BELIEFS)[1:])
def test_the_first_gradient_is_within_ten_times_that_of_cross_entropy_on_any_target(
    kind, rate, us, K
):
    kl, cross_entropy = gradients(told(us, K, kind=kind, base_rate=skewed(rate, K)))
    assert kl < 9 * cross_entropy
    # What is large is the ratio, as cross-entropy has little to say of what is nearly flat.
    assert kl < 2


@pytest.mark.parametrize("K", [2, 10, 100, 1000])
@pytest.mark.parametrize("us", FEWER)
@pytest.mark.parametrize("kind", BELIEFS)
def test_a_prior_weight_of_as_many_as_labels_bounds_it_by_two(kind, us, K):
    kl, cross_entropy = gradients(told(us, K, kind=kind), prior_weight=float(K))
    assert kl < 2 * cross_entropy


@pytest.mark.parametrize(("K", "least", "most"), [(100, 10, 30), (1000, 40, 100)])
def test_two_counts_shared_by_many_labels_pull_harder_where_doubt_is_mixed(K, least, most):
    # Each label begins with W / (K u) counts, and the slope of the digamma is one over them:
    # about K u (1 - u) / W in all, which is 12 with 100 labels of mean doubt .55.
    kl, cross_entropy = gradients(told([1e-4, 0.999], K), prior_weight=2.0)
    assert least < kl / cross_entropy < most


def test_the_forward_kl_has_no_such_bound():
    kl, cross_entropy = gradients(told([0.01], 10), direction="forward")
    assert kl > 40 * cross_entropy
    kl, cross_entropy = gradients(told([0.999], 10), direction="forward")
    assert kl < 1e-3 * cross_entropy


@pytest.mark.parametrize(("K", "W"), [(2, 2.0), (10, 2.0), (11, 2.25), (100, 24.5)])
def test_each_label_beyond_ten_adds_a_quarter_of_a_count(K, W):
    target, other = (Opinion(*map(torch.tensor, told([0.3], K, seed=n))) for n in (0, 1))
    assert_close(kl_loss(other, target), kl_loss(other, target, prior_weight=W))


def test_as_it_is_printed_the_loss_pulls_a_thousand_times_as_hard():
    kl, cross_entropy = gradients(told([1e-4], 10), normalize=False)
    assert kl > 1000 * cross_entropy


@given(
    st.lists(st.floats(1e-3, 0.99), min_size=1, max_size=8),
    st.integers(2, 5),
    st.integers(0, 99),
)
def test_a_layer_begins_near_the_mean_target(us, K, seed):
    target = told(us, K, n=400, seed=seed)
    layer = torch.nn.Linear(3, K + 1)
    start_at(layer, target)
    begins = opinion_from_logits(layer(torch.zeros(3)))
    assert float(begins.uncertainty.detach()) == pytest.approx(target.uncertainty.mean(), rel=1e-4)
    # One target more of 401 is spread evenly.
    assert_close(begins.belief.detach().double(), target.belief.mean(axis=0), 1 / 400)


@pytest.mark.parametrize("objective", ["reverse_kl", "forward_kl"])
def test_a_classifier_begins_with_the_mean_target(objective, monkeypatch):
    # Networks stay as they were built, and inputs of zeros leave nothing but the biases of a head.
    monkeypatch.setattr(classifier, "train", lambda *_, **__: [])
    X, target = np.zeros((400, 4)), told(MIXED, 3, n=400, kind="few labels")
    model = SLEClassifier(objective=objective, hidden=(), random_state=0).fit(X, target)
    begins = model.predict_opinion(X[:1])
    assert begins.uncertainty[0] == pytest.approx(target.uncertainty.mean(), rel=1e-4)
    assert_close(begins.belief[0], target.belief.mean(axis=0), 1 / 400)


@pytest.mark.parametrize("u", [1e-6, 1.0])
def test_what_cannot_be_said_is_begun_as_near_as_can_be(u):
    layer = torch.nn.Linear(3, 4)
    start_at(layer, told([u], 3), floor=0.01)
    begins = opinion_from_logits(layer(torch.zeros(3)), floor=0.01)
    assert float(begins.uncertainty.detach()) == pytest.approx(0.02 if u < 1 else 0.99, rel=1e-5)
    assert bool(torch.isfinite(layer.bias).all())


def test_targets_may_be_tensors_and_labels_that_nobody_has_are_possible():
    layer = torch.nn.Linear(3, 4)
    target = encode(torch.eye(3)[:2], torch.full((2,), 0.5))
    start_at(layer, target)
    belief = opinion_from_logits(layer(torch.zeros(3))).belief.detach()
    assert 0 < float(belief[2]) < float(belief[0]) / 2


def test_a_layer_of_another_size_or_no_target_is_refused():
    with pytest.raises(ValueError, match=r"4 outputs is needed .* 3 outputs and 256 targets came"):
        start_at(torch.nn.Linear(3, 3), told([0.5], 3))
    with pytest.raises(ValueError, match="4 outputs and 0 targets came"):
        start_at(torch.nn.Linear(3, 4), told([0.5], 3, n=0))
