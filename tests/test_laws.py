"""What must hold whatever the crowd. Each name is the law."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    ANY,
    CERTAIN_OR_NOT,
    EPS,
    MIDDLING,
    UNSURE,
    assert_close,
    assert_is_opinion,
    assert_relatively_close,
    crowds,
    join,
    relabel,
    vacuous_like,
)

import slencodings
from slencodings import (
    Opinion,
    alpha,
    discount,
    encode,
    from_alpha,
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    maximize_uncertainty,
    smooth,
    unfuse,
)

Fusion = Callable[..., Opinion]
SHARES = st.floats(0, 1, allow_subnormal=False)
FEW = st.integers(2, 6)


class Laws(NamedTuple):
    """What an operator promises; what it does not is shown by a counter-example."""

    order_is_ignored: bool
    groups_are_ignored: bool  # where nobody is certain
    names_are_ignored: bool
    copies_are_ignored: bool
    vacuous_is_ignored: bool


LAWS: dict[Fusion, Laws] = {
    fuse: Laws(True, True, True, False, True),
    fuse_average: Laws(True, False, True, True, False),
    fuse_weighted: Laws(True, False, True, True, True),
    fuse_constraint: Laws(True, True, True, False, True),
    fuse_compromise: Laws(True, False, True, True, False),
}


def promising(law: str) -> pytest.MarkDecorator:
    keepers = [operator for operator, laws in LAWS.items() if getattr(laws, law)]
    return pytest.mark.parametrize("operator", keepers)


def not_promising(law: str) -> pytest.MarkDecorator:
    others = [operator for operator, laws in LAWS.items() if not getattr(laws, law)]
    return pytest.mark.parametrize("operator", others)


def crowds_for(operator: Fusion, **kwargs: Any) -> st.SearchStrategy[Opinion]:
    """Certain sources too, but where they could be in total conflict."""
    uncertainty = UNSURE if operator is fuse_constraint else ANY
    return crowds(**{"uncertainty": uncertainty, "shared_base_rate": True} | kwargs)


def test_every_fusion_operator_says_which_laws_it_keeps() -> None:
    named = [getattr(slencodings, name) for name in slencodings.__all__ if name.startswith("fuse")]
    operators = {f for f in named if "opinion" in inspect.signature(f).parameters}
    assert operators == set(LAWS)


# -- the five ways of fusing -------------------------------------------------------------------


@promising("order_is_ignored")
@given(data=st.data())
def test_fusing_ignores_order(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds_for(operator, shared_base_rate=operator is fuse_compromise))
    order = data.draw(st.permutations(range(crowd.uncertainty.shape[-1])))
    assert_close(operator(crowd.rows((..., order))), operator(crowd))


@promising("groups_are_ignored")
@given(data=st.data())
def test_grouping_does_not_matter(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds_for(operator, uncertainty=UNSURE, sources=FEW))
    i = data.draw(st.integers(1, crowd.uncertainty.shape[-1] - 1))
    groups = crowd.rows((..., slice(i))), crowd.rows((..., slice(i, None)))
    fused = (operator(group).rows((..., None)) for group in groups)
    assert_close(operator(join(*fused)), operator(crowd))


@not_promising("groups_are_ignored")
def test_grouping_may_matter(operator: Fusion) -> None:
    crowd = encode(np.eye(2)[[0, 0, 1]], [0.2, 0.5, 0.4])
    pair = operator(crowd.rows(slice(2))).rows(None)
    gap = operator(join(pair, crowd.rows(slice(2, None)))).belief - operator(crowd).belief
    assert np.abs(gap).max() > 0.01


@promising("names_are_ignored")
@given(data=st.data())
def test_relabelling_commutes_with_fusing(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds_for(operator))
    order = np.asarray(data.draw(st.permutations(range(crowd.belief.shape[-1]))))
    assert_close(operator(relabel(crowd, order)), relabel(operator(crowd), order))


@promising("copies_are_ignored")
@given(data=st.data(), n=st.integers(1, 5))
def test_copies_do_not_count(operator: Fusion, data: st.DataObject, n: int) -> None:
    one = data.draw(crowds_for(operator, sources=st.just(1)))
    assert_close(operator(join(*[one] * n)), one.rows((..., 0)))


@not_promising("copies_are_ignored")
def test_copies_may_count(operator: Fusion) -> None:
    assert operator(encode(np.eye(2)[[0, 0]], 0.5)).uncertainty < 0.4


@promising("vacuous_is_ignored")
@given(data=st.data())
def test_a_vacuous_opinion_changes_nothing(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds_for(operator))
    assert_close(operator(join(crowd, vacuous_like(crowd))), operator(crowd))


@promising("vacuous_is_ignored")
@given(data=st.data())
def test_a_vacuous_opinion_lends_no_base_rate(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds(uncertainty=MIDDLING))
    stranger = vacuous_like(relabel(crowd, np.arange(crowd.belief.shape[-1])[::-1]))
    assert_close(operator(join(crowd, stranger)), operator(crowd))


@not_promising("vacuous_is_ignored")
def test_a_vacuous_opinion_may_matter(operator: Fusion) -> None:
    crowd = encode(np.eye(2)[[0, 0]], 0.5)
    joined = operator(join(crowd, vacuous_like(crowd)))
    assert abs(joined.uncertainty - operator(crowd).uncertainty) > 0.1


@pytest.mark.parametrize("operator", LAWS)
@given(data=st.data())
def test_the_mass_of_what_is_fused_sums_to_one(operator: Fusion, data: st.DataObject) -> None:
    crowd = data.draw(crowds_for(operator, shared_base_rate=operator is fuse_compromise))
    assert_is_opinion(operator(crowd))


# -- adding up evidence ------------------------------------------------------------------------


@given(crowds())
def test_fusing_never_adds_uncertainty(crowd: Opinion) -> None:
    assert (fuse(crowd).uncertainty <= crowd.uncertainty.min(axis=-1) * (1 + 8 * EPS)).all()


@given(crowds(uncertainty=UNSURE, sources=st.just(1)), st.integers(1, 100))
def test_n_copies_multiply_the_evidence_by_n(one: Opinion, n: int) -> None:
    b, u, _ = fuse(join(*[one] * n))
    (c, v, _) = one.rows((..., 0))
    assert_relatively_close(b / u[..., None], n * c / v[..., None])


@given(crowds(uncertainty=MIDDLING | st.just(1.0)), SHARES)
def test_an_annotation_is_worth_its_odds_in_pseudo_counts(said: Opinion, r: float) -> None:
    W, c = 3.0, r * (1 - said.uncertainty)
    fused = fuse(discount(said, r))
    counts = W * (c / (1 - c))[..., None] * said.mode
    expected = counts.sum(axis=-2) + W * fused.base_rate
    assert_relatively_close(alpha(fused, prior_weight=W), expected)


@given(crowds(uncertainty=CERTAIN_OR_NOT, sources=FEW), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_certain_fusion_is_the_limit_of_smoothed_fusion(crowd: Opinion, amount: float) -> None:
    assert_close(fuse(smooth(crowd, amount)), fuse(crowd), tol=300 * amount)


@given(crowds(uncertainty=st.just(0.0)))
def test_without_doubt_and_with_full_trust_it_is_soft_voting(votes: Opinion) -> None:
    fused = fuse(discount(votes, 1.0))
    assert_close(fused.probability, votes.belief.mean(axis=-2))
    assert (fused.uncertainty == 0).all()


@given(st.integers(2, 6), st.data(), st.integers(1, 50))
def test_unanimous_too_it_is_one_hot(K: int, data: st.DataObject, n: int) -> None:
    y = np.eye(K)[data.draw(st.integers(0, K - 1))]
    np.testing.assert_array_equal(fuse(encode(np.tile(y, (n, 1)))).probability, y)


@given(st.data())
def test_unfusing_undoes_fusing(data: st.DataObject) -> None:
    pair = data.draw(crowds(uncertainty=UNSURE, sources=st.just(2), shared_base_rate=True))
    x, y = pair.rows((..., 0)), pair.rows((..., 1))
    # Evidence of y that cancels drowns what x had: an error of EPS times it, seen through u_x.
    lost = (x.uncertainty / y.uncertainty).max(initial=0)
    back = unfuse(fuse(pair), y)
    assert_is_opinion(back)
    assert_close(back.belief, x.belief, tol=8 * EPS * (1 + lost))
    assert_close(back.uncertainty, x.uncertainty, tol=8 * EPS * (1 + lost))
    assert_close(back.base_rate, x.base_rate, tol=1e-6)


@given(crowds(uncertainty=MIDDLING, sources=st.just(2)))
def test_unfusing_gives_back_the_base_rate(pair: Opinion) -> None:
    back = unfuse(fuse(pair), pair.rows((..., 1)))
    assert_is_opinion(back)
    assert_close(back, pair.rows((..., 0)), tol=1e-10)


@given(crowds(uncertainty=MIDDLING, sources=FEW, shared_base_rate=True))
def test_taking_everybody_out_leaves_the_vacuous_opinion(crowd: Opinion) -> None:
    left = fuse(crowd)
    for i in range(crowd.uncertainty.shape[-1]):
        left = unfuse(left, crowd.rows((..., i)))
    assert_close(left, vacuous_like(crowd).rows((..., 0)), tol=1e-10)


# -- one opinion at a time ---------------------------------------------------------------------


@given(crowds())
def test_reliability_one_changes_nothing(opinion: Opinion) -> None:
    np.testing.assert_equal(discount(opinion, 1.0), opinion)


@given(crowds())
def test_reliability_zero_gives_the_vacuous_opinion(opinion: Opinion) -> None:
    assert_close(discount(opinion, 0.0), vacuous_like(opinion))


@given(crowds(), SHARES, SHARES)
def test_discounting_twice_multiplies(opinion: Opinion, r: float, s: float) -> None:
    assert_close(discount(discount(opinion, r), s), discount(opinion, r * s))


@given(crowds(), crowds(sources=st.just(1), labels=st.just(2), batch=st.just(())))
def test_only_the_projection_of_trust_counts(opinion: Opinion, trust: Opinion) -> None:
    assert_close(discount(opinion, trust), discount(opinion, trust.probability[0, 0]))


@given(crowds(), SHARES)
def test_smoothing_is_discounting_by_the_rest(opinion: Opinion, amount: float) -> None:
    assert_close(smooth(opinion, amount), discount(opinion, 1 - amount))


def test_discounting_does_not_distribute_over_fusing() -> None:
    crowd = encode(np.eye(2)[[0, 0]], 0.5)
    before, after = fuse(discount(crowd, 0.5)), discount(fuse(crowd), 0.5)
    np.testing.assert_allclose(before.belief, [0.4, 0])
    np.testing.assert_allclose(after.belief, [1 / 3, 0])


@given(crowds())
def test_maximising_uncertainty_keeps_the_probability(opinion: Opinion) -> None:
    assert_close(maximize_uncertainty(opinion).probability, opinion.probability)


@given(crowds())
def test_maximising_uncertainty_twice_is_once(opinion: Opinion) -> None:
    once = maximize_uncertainty(opinion)
    assert_close(maximize_uncertainty(once), once)


@given(crowds())
def test_maximising_leaves_some_label_without_belief(opinion: Opinion) -> None:
    possible = np.where(opinion.base_rate > 0, maximize_uncertainty(opinion).belief, np.inf)
    assert (possible.min(axis=-1) <= EPS).all()


@given(crowds())
def test_maximising_never_lowers_uncertainty(opinion: Opinion) -> None:
    assert (maximize_uncertainty(opinion).uncertainty >= opinion.uncertainty - 4 * EPS).all()


WEIGHTS = st.floats(0.1, 100)


@given(crowds(uncertainty=UNSURE), WEIGHTS, st.none() | WEIGHTS)
def test_alpha_round_trips(opinion: Opinion, W: float, C: float | None) -> None:
    weights = {"prior_weight": W, "base_weight": C}
    back = from_alpha(alpha(opinion, **weights), base_rate=opinion.base_rate, **weights)
    assert_close(back, opinion, tol=1e-10)


@given(crowds(uncertainty=UNSURE), WEIGHTS)
def test_the_mean_of_the_dirichlet_is_the_probability(opinion: Opinion, W: float) -> None:
    concentration = alpha(opinion, prior_weight=W)
    mean = concentration / concentration.sum(axis=-1, keepdims=True)
    assert_close(mean, opinion.probability)


SINGLE = {
    "discount": lambda opinion: discount(opinion, 0.7),
    "smooth": lambda opinion: smooth(opinion, 0.01),
    "maximize_uncertainty": maximize_uncertainty,
    "encode": lambda opinion: encode(opinion.mode, opinion.uncertainty),
    "unfuse": lambda opinion: unfuse(opinion, smooth(opinion, 0.5)),
    "from_alpha": lambda opinion: from_alpha(opinion.probability + 1),
}


@pytest.mark.parametrize("name", SINGLE)
@given(data=st.data())
def test_relabelling_commutes_with_everything_else(name: str, data: st.DataObject) -> None:
    opinion = data.draw(crowds())
    order = np.asarray(data.draw(st.permutations(range(opinion.belief.shape[-1]))))
    function = SINGLE[name]
    assert_close(function(relabel(opinion, order)), relabel(function(opinion), order))
    np.testing.assert_equal(alpha(relabel(opinion, order)), alpha(opinion)[..., order])


@pytest.mark.parametrize("name", SINGLE)
@given(opinion=crowds())
def test_the_mass_of_one_opinion_sums_to_one(name: str, opinion: Opinion) -> None:
    assert_is_opinion(SINGLE[name](opinion))
