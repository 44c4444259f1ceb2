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
    kl_loss,
    opinion_from_logits,
    start_at,
)


def told(us, K, n=256, seed=0):
    """Targets of any of these uncertainties, each about one label."""
    rng = np.random.default_rng(seed)
    return encode(np.eye(K)[rng.integers(0, K, n)], rng.choice(us, n))


def network(head):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), head(64))


def size_of_gradient(network, loss):
    network.zero_grad()
    loss.backward()
    return math.sqrt(sum(float((p.grad**2).sum()) for p in network.parameters()))


def gradients(us, K, **how):
    """The size of the first gradient of a small network: of the reverse KL, of cross-entropy."""
    target = told(us, K)
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))
    ours, usual = (
        network(lambda size: OpinionHead(size, K)),
        network(lambda n: torch.nn.Linear(n, K)),
    )
    start_at(ours[-1].linear, target)  # pyright: ignore[reportArgumentType]
    opinion = Opinion(*(torch.tensor(part) for part in target))
    label = opinion.belief.argmax(dim=-1)
    kl = size_of_gradient(ours, kl_loss(ours(x), opinion, **how))
    return kl, size_of_gradient(usual, torch.nn.functional.cross_entropy(usual(x), label))


MIXED = [1e-4, 0.01, 0.1, 0.5, 0.9, 0.999]
TARGETS = [[1e-4], [0.01], [0.5], [0.999], [1e-4, 0.999], [1e-4, 0.5], [0.01, 0.999], MIXED]


@pytest.mark.parametrize("K", [2, 10, 11, 100, 1000])
@pytest.mark.parametrize("us", TARGETS)
def test_the_first_gradient_is_hardly_larger_than_that_of_cross_entropy_on_any_target(us, K):
    kl, cross_entropy = gradients(us, K)
    assert kl < 1.5 * cross_entropy


@pytest.mark.parametrize("K", [2, 10, 100, 1000])
@pytest.mark.parametrize("us", TARGETS)
def test_a_prior_weight_of_as_many_as_labels_bounds_it_by_two(us, K):
    kl, cross_entropy = gradients(us, K, prior_weight=float(K))
    assert kl < 2 * cross_entropy


def test_two_counts_shared_by_many_labels_pull_harder_where_doubt_is_mixed():
    # Each label begins with W / (K u) counts, and the slope of the digamma is one over them:
    # about K u (1 - u) / W in all, which is 12 with 100 labels of mean doubt .55.
    kl, cross_entropy = gradients([1e-4, 0.999], 100, prior_weight=2.0)
    assert 10 < kl / cross_entropy < 20
    kl, cross_entropy = gradients([1e-4, 0.999], 1000, prior_weight=2.0)
    assert 40 < kl / cross_entropy < 70


@pytest.mark.parametrize(("K", "W"), [(2, 2.0), (10, 2.0), (11, 2.2), (100, 20.0)])
def test_no_label_begins_with_less_than_a_fifth_of_a_count(K, W):
    target, other = (Opinion(*map(torch.tensor, told([0.3], K, seed=n))) for n in (0, 1))
    assert_close(kl_loss(other, target), kl_loss(other, target, prior_weight=W))


def test_as_it_is_printed_the_loss_pulls_a_thousand_times_as_hard():
    kl, cross_entropy = gradients([1e-4], 10, normalize=False)
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
