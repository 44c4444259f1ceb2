"""Opinions one by one: shapes, dtypes, what a NamedTuple does for us, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
from strategies import Arrays, assert_close, to_numpy

from slencodings import (
    Opinion,
    alpha,
    check,
    credible_interval,
    discount,
    encode,
    from_alpha,
    maximize_uncertainty,
    smooth,
)


def dtypes(opinion: Opinion) -> set[str]:
    return {str(x.dtype).rpartition(".")[2] for x in opinion}


def said(shape: tuple[int, ...], K: int = 3) -> Opinion:
    rng = np.random.default_rng(0)
    return encode(rng.dirichlet(np.ones(K), size=shape), rng.uniform(size=shape))


# -- encode ------------------------------------------------------------------------------------


def test_encoding_moves_the_doubt_from_belief_to_uncertainty(xp: Arrays) -> None:
    opinion = encode(xp.array(np.eye(2)), xp.array(np.asarray([0.0, 0.25])))
    expected = Opinion(
        np.asarray([[1, 0], [0, 0.75]]), np.asarray([0, 0.25]), np.full((2, 2), 1 / 2)
    )
    assert_close(opinion, expected)


@pytest.mark.parametrize("y_shape", [(), (4,), (5, 4), (5, 1)])
@pytest.mark.parametrize("u_shape", [(), (4,), (5, 4), (1,)])
def test_labels_and_uncertainty_broadcast(
    xp: Arrays, y_shape: tuple[int, ...], u_shape: tuple[int, ...]
) -> None:
    opinion = encode(xp.array(np.full((*y_shape, 2), 0.5)), xp.array(np.full(u_shape, 0.5)))
    shape = np.broadcast_shapes(y_shape, u_shape)
    assert [x.shape for x in opinion] == [(*shape, 2), shape, (*shape, 2)]


@pytest.mark.parametrize(
    "y", [[[1, 0], [0, 1]], np.eye(2, dtype=int), np.eye(2, dtype=bool), np.eye(2)]
)
def test_labels_may_be_lists_integers_or_booleans(y: Any) -> None:
    assert_close(encode(y, [0.5, 0]).belief, np.asarray([[0.5, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("dtype", [np.int64, bool])
def test_whole_number_labels_become_floats(xp: Arrays, dtype: type) -> None:
    opinion = encode(xp.array(np.eye(2, dtype=dtype)), 0.5)
    assert np.asarray(opinion.belief).tolist() == [[0.5, 0], [0, 0.5]]


@pytest.mark.parametrize("shape", [(2,), (4, 2), (5, 4, 2)])
def test_a_base_rate_is_spread_over_the_opinions(xp: Arrays, shape: tuple[int, ...]) -> None:
    a = np.broadcast_to([0.25, 0.75], shape)
    opinion = encode(xp.array(np.full((5, 4, 2), 0.5)), base_rate=xp.array(np.array(a)))
    assert_close(opinion.base_rate, np.broadcast_to(a, (5, 4, 2)))


def test_a_label_code_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`y` needs the K labels .* np\.eye\(K\)\[codes\]"):
        encode(1)


@pytest.mark.parametrize("base_rate", [0.5, [0.5], [0.2, 0.3, 0.5]])
def test_a_base_rate_over_other_labels_is_refused(base_rate: Any) -> None:
    with pytest.raises(ValueError, match="`base_rate` needs 2 values on its last axis"):
        encode(np.eye(2), base_rate=base_rate)
    with pytest.raises(ValueError, match="`base_rate` needs 2 values on its last axis"):
        from_alpha(np.ones((3, 2)), base_rate=base_rate)


def test_more_base_rates_than_opinions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"to that of `belief`; belief \(2,\), base_rate \(3, 2\)"):
        encode([1, 0], base_rate=np.full((3, 2), 0.5))


def test_uncertainty_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"broadcast together; .* \(3,\), uncertainty \(2,\) came"):
        encode(np.eye(3), [0.1, 0.2])


# -- discount and smooth -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (4,), (5, 1), (5, 4)])
def test_reliability_broadcasts_to_the_opinions(xp: Arrays, shape: tuple[int, ...]) -> None:
    opinion, r = said((5, 4)), np.random.default_rng(1).uniform(size=shape)
    whole = np.broadcast_to(r, (5, 4))
    expected = Opinion(
        whole[..., None] * opinion.belief,
        1 - whole * opinion.belief.sum(-1),
        opinion.base_rate,
    )
    assert_close(discount(xp(opinion), xp.array(np.array(r))), expected)
    assert_close(smooth(xp(opinion), xp.array(np.array(1 - r))), expected)


@pytest.mark.parametrize("r", [0.5, np.float64(0.5), np.float32(0.5), [0.5] * 4, 1])
def test_reliability_may_be_a_number_or_a_list(xp: Arrays, r: Any) -> None:
    opinion = said((5, 4))
    assert_close(discount(xp(opinion), r), discount(opinion, np.asarray(r, float)))


def test_reliability_may_be_an_opinion(xp: Arrays) -> None:
    opinion, trust = said((5, 4)), said((4,), K=2)
    trusted = discount(opinion, trust.probability[..., 0])
    assert_close(discount(xp(opinion), xp(trust)), trusted)


def test_trust_over_three_labels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be binomial, .*one over 3 labels came"):
        discount(encode(np.eye(2)), encode(np.eye(3)[0]))


@pytest.mark.parametrize("function", [discount, smooth])
def test_more_numbers_than_opinions_are_refused(function: Any) -> None:
    with pytest.raises(ValueError, match=r"to that of `opinion`; opinion \(5,\), \w+ \(3, 5\)"):
        function(said((5,)), np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"broadcast together; opinion \(5, 4\), \w+ \(5,\) came"):
        function(said((5, 4)), np.ones(5))


# -- the Dirichlet -----------------------------------------------------------------------------


def test_a_certain_opinion_is_an_infinite_dirichlet(xp: Arrays) -> None:
    concentration = alpha(xp(encode([[0.0, 1.0], [0.0, 1.0]], [0.0, 0.5])))
    np.testing.assert_array_equal(np.asarray(concentration), [[1, np.inf], [1, 3]])


def test_the_paper_prints_another_base_weight() -> None:
    printed = alpha(encode(np.eye(3)[0], 0.5), prior_weight=2, base_weight=3)
    np.testing.assert_allclose(printed, [3, 1, 1])  # Eq. 1: 2 b / u + K a


def test_one_is_the_flat_dirichlet_and_vacuous(xp: Arrays) -> None:
    flat = from_alpha(xp.array(np.ones((4, 3))), prior_weight=3)
    assert_close(flat, encode(np.zeros((4, 3)), 1.0))


def test_a_single_concentration_is_refused() -> None:
    with pytest.raises(ValueError, match="`alpha` needs the K labels on its last axis"):
        from_alpha(3.0)


# -- maximize_uncertainty ----------------------------------------------------------------------


def test_a_label_that_nobody_expects_does_not_bound_uncertainty(xp: Arrays) -> None:
    opinion = encode([0.2, 0.6, 0.2], base_rate=[0.5, 0.5, 0.0])
    expected = Opinion(np.asarray([0, 0.4, 0.2]), np.asarray(0.4), np.asarray([0.5, 0.5, 0]))
    assert_close(maximize_uncertainty(xp(opinion)), expected)


# -- the NamedTuple ----------------------------------------------------------------------------


def test_the_mode_is_what_is_believed_or_else_expected(xp: Arrays) -> None:
    opinion = encode([[0.5, 0.5], [1, 0], [1, 0]], [0.9, 0, 1], base_rate=[0.25, 0.75])
    assert_close(xp(opinion).mode, np.asarray([[0.5, 0.5], [1, 0], [0.25, 0.75]]))


@pytest.mark.parametrize(
    "index", [0, -1, slice(2), ..., None, (0, 1), (..., 0), (slice(None), -1), (..., None, 0)]
)
def test_rows_counts_the_axes_of_uncertainty(index: Any) -> None:
    opinion = said((5, 4))
    some = opinion.rows(index)
    np.testing.assert_array_equal(some.uncertainty, opinion.uncertainty[index])
    for k in range(3):
        np.testing.assert_array_equal(some.belief[..., k], opinion.belief[..., k][index])
        np.testing.assert_array_equal(some.base_rate[..., k], opinion.base_rate[..., k][index])


@pytest.mark.parametrize("index", [[2, 0], [True, False, True]])
def test_rows_takes_arrays(index: list[int]) -> None:
    opinion = said((3,))
    picked = opinion.rows(np.asarray(index))
    np.testing.assert_equal(picked, opinion.rows(index))
    np.testing.assert_array_equal(picked.uncertainty, opinion.uncertainty[index])


def test_rows_works_everywhere(xp: Arrays) -> None:
    assert_close(xp(said((5, 4))).rows((slice(None), 2)), said((5, 4)).rows((slice(None), 2)))


def test_an_opinion_can_be_pickled() -> None:
    np.testing.assert_equal(pickle.loads(pickle.dumps(said((2,)))), said((2,)))


def test_an_opinion_is_a_tree_in_jax() -> None:
    jax = pytest.importorskip("jax")
    doubled = jax.tree.map(lambda x: 2 * x, said((2,)))
    assert isinstance(doubled, Opinion)
    np.testing.assert_array_equal(doubled.uncertainty, 2 * said((2,)).uncertainty)


def test_opinions_are_collated_by_torch() -> None:
    torch = pytest.importorskip("torch")
    opinion = Opinion(*map(torch.asarray, map(np.array, said((5,)))))
    collated = torch.utils.data.default_collate([opinion.rows(i) for i in range(5)])
    assert isinstance(collated, Opinion)
    assert_close(collated, opinion)


# -- dtypes ------------------------------------------------------------------------------------

FUNCTIONS = {
    "encode": lambda o: encode(o.belief, 0.5),
    "discount": lambda o: discount(o, 0.5),
    "discount by a NumPy scalar": lambda o: discount(o, np.float64(0.5)),
    "smooth": lambda o: smooth(o, 0.01),
    "maximize_uncertainty": maximize_uncertainty,
    "from_alpha": lambda o: from_alpha(o.belief + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision_stays(xp: Arrays, name: str) -> None:
    opinion = Opinion(*(xp.array(x.astype(np.float32)) for x in said((3, 4))))
    came = FUNCTIONS[name](opinion)
    assert dtypes(came) == {"float32"}
    expected = Opinion(*map(np.float32, FUNCTIONS[name](said((3, 4)))))
    assert_close(to_numpy(came), expected, tol=1e-6)
    assert str(alpha(opinion).dtype).endswith("float32")


def test_integers_take_the_default_precision_of_the_library() -> None:
    assert dtypes(encode(np.eye(2, dtype=int))) == {"float64"}


def test_integers_take_the_default_precision_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert dtypes(encode(torch.eye(2, dtype=torch.int64))) == {"float32"}


def test_all_parts_have_the_widest_precision_that_came() -> None:
    wide, narrow = np.eye(2), np.full(2, 0.5, dtype=np.float32)
    assert dtypes(encode(wide, base_rate=narrow)) == {"float64"}
    assert dtypes(encode(wide.astype(np.float32), np.zeros(2), base_rate=narrow)) == {"float64"}


# -- check -------------------------------------------------------------------------------------


def test_check_returns_what_is_fine(xp: Arrays) -> None:
    opinion = xp(said((5, 4)))
    assert check(opinion) is opinion
    check(xp(said((0, 4))))
    check(xp(said(())))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"belief": np.asarray([[-0.5, 1.5]] * 2)}, "must not be negative; 2 of 2 .*first -0.5 at"),
        ({"base_rate": np.asarray([[0.5, 0.5], [1.5, -0.5]])}, r"1 of 2 .*first -0.5 at .* \(1,\)"),
        ({"uncertainty": np.asarray([0.0, 0.5])}, r"sum to 1; 1 of 2 .*first 1.5 at index \(1,\)"),
        ({"uncertainty": np.asarray([np.nan, 0])}, r"first nan at index \(0,\)"),
        (
            {"base_rate": np.asarray([[0.5, 0.2]] * 2)},
            "base_rate must sum to 1; 2 of 2 .*first 0.7",
        ),
    ],
)
def test_check_says_what_is_wrong(xp: Arrays, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(xp(encode(np.eye(2))._replace(**change)))


@pytest.mark.parametrize(("dtype", "slip"), [(np.float64, 1e-8), (np.float32, 1e-4)])
@pytest.mark.parametrize("part", Opinion._fields)
def test_check_lets_half_of_the_digits_slip(dtype: type, slip: float, part: str) -> None:
    opinion = Opinion(*(x.astype(dtype) for x in said((3, 4))))
    changed = getattr(opinion, part).copy()
    changed.flat[0] += slip
    check(opinion._replace(**{part: changed}))
    changed.flat[0] += 9 * slip
    with pytest.raises(ValueError, match="must sum to 1; 1 of 12 opinions"):
        check(opinion._replace(**{part: changed}))


@pytest.mark.parametrize(
    "change",
    [{"uncertainty": np.zeros(3)}, {"base_rate": np.full(2, 0.5)}, {"belief": np.asarray(1.0)}],
)
def test_check_refuses_shapes_that_do_not_fit(xp: Arrays, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"an opinion of shape S needs .*, uncertainty \("):
        check(xp(encode(np.eye(2))._replace(**change)))


@pytest.mark.parametrize("u", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_one_answer_to_a_question_with_two_is_a_kumaraswamy_distribution(u: float, coverage: float):
    opinion = encode(np.asarray([1.0, 0.0]), np.asarray(u))
    a, b = alpha(opinion)
    assert b == 1
    # Its distribution function is 1 - (1 - x^a)^b.
    tail = (1 - coverage) / 2
    ends = [(1 - (1 - q) ** (1 / b)) ** (1 / a) for q in (tail, 1 - tail)]
    low, high = credible_interval(opinion, coverage=coverage)
    np.testing.assert_allclose([low[0], high[0]], ends, rtol=1e-12)
