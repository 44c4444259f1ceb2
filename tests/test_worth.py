"""What votes are worth, and what they say, before anything is learned of them."""

import numpy as np
import pytest

from slencodings import Annotations, from_table
from slencodings.opinion import Floats, alpha
from slencodings.trust import count_each, learn_crowd
from slencodings.trust.worth import Learned, expected_meaning


def said(labels: list[tuple[str, str]]) -> Annotations:
    """Two people, who each say something of every item."""
    item = np.repeat(np.arange(len(labels)), 2)
    columns = {"item": item, "annotator": ["a", "b"] * len(labels), "label": np.ravel(labels)}
    return from_table(columns, item="item", annotator="annotator", label="label")


@pytest.mark.parametrize("K", [2, 3, 7])
def test_a_vote_is_expected_to_be_for_its_label_again_nine_times_of_ten(K: int) -> None:
    expected = np.full((K, K), 0.1 / (K - 1))
    np.fill_diagonal(expected, 0.9)
    np.testing.assert_allclose(expected_meaning(K), expected, rtol=1e-14)


def test_of_one_label_there_is_nothing_else_to_say() -> None:
    np.testing.assert_array_equal(expected_meaning(1), [[1.0]])


def test_nobody_changes_what_is_expected_for_all_others() -> None:
    with pytest.raises(ValueError, match="read-only"):
        expected_meaning(2)[0, 0] = 1.0


def test_what_votes_say_is_as_expected_but_for_what_was_learned() -> None:

    def meaning_of(apart: Floats) -> Floats:
        found = Learned(0.0, np.zeros(1), np.zeros(1), 0.0, apart).meaning
        assert found is not None
        return found

    apart = np.zeros((3, 3))
    np.testing.assert_allclose(meaning_of(apart), expected_meaning(3), rtol=1e-14)
    apart[0, 2] = np.log(4)
    # Odds of 18 to 1 become 18 to 4; the row sums to 1 again.
    meaning = meaning_of(apart)
    np.testing.assert_allclose(meaning[0] * 23, [18, 1, 4], rtol=1e-14)
    np.testing.assert_allclose(meaning[1:], expected_meaning(3)[1:], rtol=1e-14)


def test_each_vote_is_one_count_of_two_where_nothing_is_learned() -> None:
    a = said([("cat", "cat"), ("cat", "dog")])
    crowd = count_each(a)
    assert crowd.prior_weight == 2
    counts = alpha(crowd.votes(a), prior_weight=2.0) - 2 * crowd.votes(a).base_rate
    np.testing.assert_allclose(counts, [[2, 0], [1, 1]], atol=1e-14)


def test_what_is_learned_is_compared_with_each_vote_as_one_count() -> None:
    """Half from all others, half from those before; of two the first has nobody before it."""
    same, different = 30, 10
    labels = [("cat", "cat"), ("dog", "dog")] * (same // 2)
    found = learn_crowd(said(labels + [("cat", "dog"), ("dog", "cat")] * (different // 2)), rng=0)
    by_other = same * np.log(3 / 2) + different * np.log(3 / 1)
    by_nobody = (same + different) * np.log(2)
    expected = (by_other + (by_nobody + by_other) / 2) / (2 * (same + different))
    assert found.losses["votes"] == pytest.approx(expected, rel=1e-12)
