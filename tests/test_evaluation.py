import json
import math
from dataclasses import replace

import numpy as np
import pytest
from crowds import by_chance
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from strategies import assert_same_row, present, seeds

from slencodings import Opinion, encode, evaluate, from_table, smooth
from slencodings.aggregate import soft_vote
from slencodings.annotations import Annotations
from slencodings.evaluation.vote_counts import LEVELS
from slencodings.metrics import entropy_correlation, entropy_similarity, jsd

SECOND_ORDER = {
    "auroc_errors_gold",
    "auroc_errors_crowd",
    "vote_log_loss_dirichlet",
    "coverage_50",
    "coverage_80",
    "coverage_90",
    "coverage_95",
    "uncertainty",
    "dissonance",
    "auroc_ood",
    "kl_forward",
    "kl_reverse",
}


def opinions(rng, N=12, K=3):
    return encode(rng.dirichlet(np.ones(K), N), rng.uniform(0.05, 1, N))


def from_counts(votes):
    """A crowd that gave these votes (N, K)."""
    N, K = votes.shape
    cell = np.repeat(np.arange(N * K), votes.ravel())
    R = len(cell)
    zero = np.zeros(R, int)
    return Annotations(
        cell // K, zero, cell % K, np.zeros(R), np.arange(N), np.arange(1), np.arange(K)
    )


# As labels


@given(seeds, st.integers(2, 4))
def test_scores_against_gold_are_those_of_scikit_learn(rng, K):
    a, said = by_chance(rng, N=12, R=40, K=K), opinions(rng, K=K)
    gold = rng.integers(-1, K, 12)
    gold[0] = 0
    row = evaluate(said, a, gold)
    known = gold >= 0
    truth, P, u = gold[known], said.probability[known], said.uncertainty[known]
    top = P.argmax(axis=1)
    assert row["items_gold"] == known.sum()
    for kind in ("micro", "macro"):
        expected = f1_score(truth, top, average=kind)
        assert row[f"{kind}_f1_gold"] == pytest.approx(expected, abs=1e-12)
    loss = log_loss(truth, P, labels=np.arange(K))
    assert row["cross_entropy_gold"] == pytest.approx(loss, abs=1e-12)
    brier = sum((P[i, k] - (truth[i] == k)) ** 2 for i, k in np.ndindex(*P.shape)) / len(P)
    assert row["brier_gold"] == pytest.approx(brier, abs=1e-12)
    wrong = top != truth
    if 0 < wrong.sum() < len(wrong):
        expected = roc_auc_score(wrong, u), roc_auc_score(wrong, 1 - P.max(axis=1))
        assert row["auroc_errors_gold"] == pytest.approx(expected[0], abs=1e-12)
        assert row["auroc_errors_gold_probability"] == pytest.approx(expected[1], abs=1e-12)
    else:
        assert row["auroc_errors_gold"] is row["auroc_errors_gold_probability"] is None


def test_gold_is_a_mapping_or_codes_and_leaves_what_the_crowd_says_alone():
    said = {"item": ["p", "p", "q", "r"], "label": ["yes", "no", "no", "yes"]}
    a = from_table(said, item="item", label="label")
    predicted = encode([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]], 0.2)
    by_name = evaluate(predicted, a, {"p": "no", "r": "no"})
    assert by_name == evaluate(predicted, a, [0, -1, 0])
    assert by_name["micro_f1_gold"] == 0.5
    assert by_name["items_gold"] == 2
    without = evaluate(predicted, a)
    gold = {key for key in by_name if "_gold" in key}
    assert_same_row(by_name, without, but=gold)
    assert [without[key] for key in gold - {"items_gold"}] == [None] * (len(gold) - 1)
    assert without == evaluate(predicted, a, [-1, -1, -1])


def test_labels_that_tie_count_in_parts_in_truth_and_prediction():
    a = from_counts(np.asarray([[1, 1, 0], [0, 3, 1], [2, 0, 0]]))
    row = evaluate(np.asarray([[0.6, 0.2, 0.2], [0.4, 0.4, 0.2], [0.5, 0.3, 0.2]]), a)
    assert row["micro_f1_crowd"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    # |true| = 1.5, 1.5, 0; |predicted| = 2.5, 0.5, 0; label 2 does not occur
    assert row["macro_f1_crowd"] == pytest.approx((2 * 1.5 / 4 + 2 * 0.5 / 2) / 2)


# As distributions


@given(seeds, st.booleans())
def test_scores_against_the_crowd_are_those_of_its_shares_of_votes(rng, soft):
    a, said = by_chance(rng, N=12, R=40, soft=soft), opinions(rng)
    row = evaluate(said, a)
    votes = np.zeros((12, 3))
    for i, y in zip(a.item, a.vectors, strict=True):
        votes[i] += y
    some = votes.sum(axis=1) > 0
    p = votes[some] / votes[some].sum(axis=1, keepdims=True)
    q = said.probability[some]
    expected = {
        "items": 12,
        "items_crowd": some.sum(),
        "votes": 40,
        "jsd": np.mean(jsd(p, q)),
        "jsd_root": np.mean(jsd(p, q, root=True)),
        "nes": entropy_similarity(p, q),
        "nec": entropy_correlation(p, q),
        "cross_entropy_crowd": -np.sum(p * np.log(q)) / len(p),
        "brier_crowd": np.sum((p - q) ** 2) / len(p),
        "vote_log_loss": np.mean(
            [-y @ np.log(said.probability[i]) for i, y in zip(a.item, a.vectors, strict=True)]
        ),
        "uncertainty": np.mean(said.uncertainty),
    }
    assert {key: row[key] for key in expected} == pytest.approx(expected, abs=1e-12)
    assert (row["vote_log_loss_dirichlet"] is None) == soft
    assert (row["coverage_50"] is None) == soft


def test_soft_labels_that_are_one_hot_are_votes():
    rng = np.random.default_rng(0)
    a, said = by_chance(rng, N=12, R=40), opinions(rng)
    assert_same_row(evaluate(said, a), evaluate(said, replace(a, y=a.vectors)))


def test_probabilities_have_what_needs_no_uncertainty():
    rng = np.random.default_rng(1)
    a, said, gold = by_chance(rng, N=12, R=40), opinions(rng), rng.integers(0, 3, 12)
    strange, target = opinions(rng, 4), opinions(rng)
    a = replace(a, ordered=True)
    whole = evaluate(said, a, gold, ood=strange, target=target)
    assert all(value is not None for value in whole.values())
    part = evaluate(said.probability, a, gold, ood=strange, target=target)
    assert_same_row(whole, part, but=SECOND_ORDER)
    assert {key for key, value in part.items() if value is None} == SECOND_ORDER


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_predictions_come_from_any_array_library(library):
    rng = np.random.default_rng(2)
    a, said = by_chance(rng, N=12, R=40), opinions(rng)
    single = Opinion(*(x.astype(np.float32) for x in said))
    if library == "torch":
        torch = pytest.importorskip("torch")
        other = Opinion(*(torch.tensor(x, requires_grad=True) for x in single))
        half = Opinion(*(torch.tensor(x, dtype=torch.bfloat16) for x in said))
    else:
        jax = pytest.importorskip("jax")
        other = Opinion(*(jax.numpy.asarray(x) for x in single))
        half = Opinion(*(jax.numpy.asarray(x, dtype="bfloat16") for x in said))
    row = evaluate(other, a, ood=other, target=said)
    assert_same_row(row, evaluate(single, a, ood=single, target=said))
    assert row["vote_log_loss"] == pytest.approx(evaluate(said, a)["vote_log_loss"], rel=1e-5)
    for rough in (half, half.probability):
        loss = evaluate(rough, a)["vote_log_loss"]
        assert loss == pytest.approx(row["vote_log_loss"], rel=1e-2)


# As what is known of distributions


def urn(a, P, u, W):
    """Each vote predicted by the opinion and the votes that were before it on its item."""
    seen, loss = np.zeros(P.shape), []
    for i, k in zip(a.item, a.y, strict=True):
        fused = W * P[i] / u[i] + seen[i]
        loss.append(-math.log(fused[k] / fused.sum()))
        seen[i, k] += 1
    return np.mean(loss)


@given(seeds, st.sampled_from([0.5, 2.0, 5.0]))
def test_votes_are_predicted_by_the_opinion_and_the_votes_before_them(rng, W):
    a, said = by_chance(rng, N=12, R=40), opinions(rng)
    row = evaluate(said, a, prior_weight=W)
    expected = urn(a, said.probability, said.uncertainty, W)
    assert row["vote_log_loss_dirichlet"] == pytest.approx(expected, abs=1e-12)


def drawn(rng, alpha, n):
    """Votes from Dirichlet-multinomials."""
    return np.stack([rng.multinomial(m, rng.dirichlet(x)) for m, x in zip(n, alpha, strict=True)])


def test_a_model_that_is_right_about_its_uncertainty_reaches_its_levels_and_others_do_not():
    rng = np.random.default_rng(4)
    N = 3000
    said = encode(rng.dirichlet(np.ones(3), N), rng.uniform(0.1, 0.9, N))
    alpha = 2 * said.probability / said.uncertainty[:, None]
    a = from_counts(drawn(rng, alpha, rng.integers(1, 12, N)))
    keys = [f"coverage_{level}" for level in (50, 80, 90, 95)]

    def row(factor):
        """The same probabilities, more or less sure of them."""
        found = evaluate(said, a, prior_weight=2 * factor)
        return {name: value for name, value in found.items() if value is not None}

    right, bold, shy = row(1), row(8), row(1 / 8)
    for level, key in zip(LEVELS, keys, strict=True):
        # the deviation of a mean over N items of shares in [0, 1] with mean `level` is at most this
        assert abs(right[key] - level) < 4 * math.sqrt(level * (1 - level) / N)
        assert bold[key] < level - 0.05
    assert shy["coverage_50"] > 0.55
    best = right["vote_log_loss_dirichlet"]
    assert best < min(bold["vote_log_loss_dirichlet"], shy["vote_log_loss_dirichlet"])
    assert right["vote_log_loss"] == bold["vote_log_loss"] == shy["vote_log_loss"]


def test_uncertainty_tells_other_inputs_apart():
    a = from_counts(np.asarray([[2, 0], [0, 2]]))
    said = encode(np.eye(2), [0.1, 0.3])
    strange = encode(np.full((3, 2), 0.5), [0.2, 0.3, 0.9])
    row = evaluate(said, a, ood=strange)
    assert row["auroc_ood"] == pytest.approx((1 + 1.5 + 2) / 6)
    assert row["auroc_ood_probability"] == 1
    mixed = evaluate(said, a, ood=strange.probability)
    assert mixed["auroc_ood"] is None
    assert mixed["auroc_ood_probability"] == 1
    assert evaluate(said, a, ood=np.ones((0, 2)))["auroc_ood_probability"] is None


def dirichlet_divergence(p, q):
    """-H(p) - E_p[log q], with SciPy's entropy, where E_p[log x] = digamma(p) - digamma(sum p)."""
    E_log_x = digamma(p) - digamma(p.sum())
    E_log_q = gammaln(q.sum()) - gammaln(q).sum() + (q - 1) @ E_log_x
    return -dirichlet.entropy(p) - E_log_q


def test_divergence_from_a_target_is_that_of_dirichlets():
    rng = np.random.default_rng(5)
    a, said, target = by_chance(rng, N=12, R=40), opinions(rng), opinions(rng)
    q, p = (3 * o.probability / o.uncertainty[:, None] for o in (said, target))
    row = evaluate(said, a, target=target, prior_weight=3)
    assert row["kl_forward"] == pytest.approx(np.mean([*map(dirichlet_divergence, p, q)]))
    assert row["kl_reverse"] == pytest.approx(np.mean([*map(dirichlet_divergence, q, p)]))
    certain = encode(np.eye(3)[rng.integers(0, 3, 12)], 0.0)
    assert evaluate(said, a, target=certain)["kl_forward"] is None
    assert present(evaluate(said, a, target=smooth(certain, 0.01))["kl_forward"]) > 0


# The row


@given(seeds, st.booleans())
def test_rows_do_not_depend_on_the_order_of_annotations_items_or_labels(rng, soft):
    a, said = by_chance(rng, N=12, R=40, soft=soft), opinions(rng)
    gold = rng.integers(-1, 3, 12)
    row = evaluate(said, a, gold)
    rows, items, labels = rng.permutation(40), rng.permutation(12), rng.permutation(3)
    where, which = np.argsort(items), np.argsort(labels)
    b = replace(
        a,
        item=where[a.item[rows]],
        annotator=a.annotator[rows],
        y=a.y[rows][:, labels] if soft else which[a.y[rows]],
        items=a.items[items],
        labels=a.labels[labels],
    )
    shuffled = Opinion(
        said.belief[items][:, labels], said.uncertainty[items], said.base_rate[items][:, labels]
    )
    codes = np.where(gold >= 0, which[gold], -1)[items]
    assert_same_row(row, evaluate(shuffled, b, codes))


def test_a_row_is_flat_plain_and_always_has_the_same_keys():
    rng = np.random.default_rng(6)
    a, said = by_chance(rng, N=12, R=40), opinions(rng)
    rows = [
        evaluate(said, a),
        evaluate(said.probability, a),
        evaluate(said, a, rng.integers(0, 3, 12), ood=said, target=said),
        evaluate(said, replace(a, item=a.item[:0], y=a.y[:0], annotator=a.annotator[:0])),
    ]
    for row in rows:
        assert list(row) == list(rows[0])
        assert {type(value) for value in row.values()} <= {int, float, type(None)}
        assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_every_key_is_in_the_table():
    table = [
        line for line in present(evaluate.__doc__).splitlines() if line.strip().startswith("|")
    ]
    named = " ".join(line.split("|")[1] for line in table[2:]).replace(",", " ").split()
    levels = {f"coverage{name}" for name in named if name.startswith("_")}
    plain = {name for name in named if "*" not in name and not name.startswith("_")}
    both = {name.replace("*", x) for name in named if "*" in name for x in ("gold", "crowd")}
    a = from_counts(np.asarray([[1, 0]]))
    assert set(evaluate(encode([[0.5, 0.5]], 0.5), a)) == plain | both | levels


def test_what_is_not_defined_is_none():
    def undefined(predicted, votes, gold=None, **more):
        row = evaluate(predicted, from_counts(np.asarray(votes)), gold, **more)
        return {key for key, value in row.items() if value is None}

    no_gold = {f"{x}_gold" for x in ("micro_f1", "macro_f1", "cross_entropy", "brier", "ece")}
    no_gold |= {"auroc_errors_gold", "auroc_errors_gold_probability"}
    no_order = {"ranked_gold", "ranked_crowd", "steps_gold", "steps_crowd", "wasserstein"}
    nothing_else = {"auroc_ood", "auroc_ood_probability", "kl_forward", "kl_reverse"}
    no_errors = {"auroc_errors_crowd", "auroc_errors_crowd_probability"}
    usual = no_gold | nothing_else | no_order
    said = encode([[0.8, 0.2], [0.4, 0.6]], [0.1, 0.2])
    assert undefined(said, [[2, 1], [3, 0]]) == usual
    assert undefined(said, [[2, 1], [0, 3]]) == usual | no_errors
    assert undefined(said, [[0, 1], [3, 0]]) == usual | no_errors | {"nec"}
    assert undefined(encode(np.ones((2, 1)), 0.5), [[2], [1]]) == usual | no_errors | {"nec"}
    none = evaluate(said, from_counts(np.zeros((2, 2), int)), [0, 0])
    assert none["micro_f1_gold"] == 0.5
    assert none["uncertainty"] == pytest.approx(0.15)
    crowd_only = {key for key in none if "_crowd" in key or key.startswith(("cover", "vote_"))}
    crowd_only |= {"jsd", "jsd_root", "nes", "nec"}
    assert {key for key in crowd_only if none[key] is not None} == {"items_crowd"}
    nobody = evaluate(encode(np.ones((0, 2)), np.ones(0)), from_counts(np.zeros((0, 2), int)))
    assert {v for k, v in nobody.items() if not k.startswith(("items", "votes"))} == {None}


def test_what_had_no_chance_costs_infinity():
    a = from_counts(np.asarray([[1, 1], [0, 2]]))
    row = evaluate(encode(np.eye(2), 0.0), a)
    for key in ("vote_log_loss", "vote_log_loss_dirichlet", "cross_entropy_crowd"):
        assert row[key] == math.inf, key
    assert row["coverage_50"] == pytest.approx(0.25)
    assert row["brier_crowd"] == pytest.approx(0.25)


def test_probabilities_in_half_precision_gain_nothing_by_their_sum():
    a = from_counts(np.asarray([[1, 0], [0, 1]]))
    low, high = (evaluate(x * np.full((2, 2), 0.5), a)["vote_log_loss"] for x in (1, 1.004))
    assert low == pytest.approx(high, abs=1e-14)


def test_belief_a_hair_below_nothing_is_nothing():
    a = from_counts(np.asarray([[2, 1], [0, 1]]))
    hair = Opinion(np.asarray([[1.0, -1e-9], [0.0, 1.0]]), np.zeros(2), np.full((2, 2), 0.5))
    assert_same_row(evaluate(encode(np.eye(2)), a), evaluate(hair, a))


# What it refuses

CROWD = from_counts(np.asarray([[1, 0], [0, 1]]))
FINE = encode(np.eye(2), 0.5)


@pytest.mark.parametrize(
    ("predicted", "more", "words"),
    [
        (encode(np.eye(3), 0.5), {}, r"`predicted` must.*\(2,\) or.*\(2, 2\).*belief of shape"),
        (np.ones((2, 3)) / 3, {}, r"\(2, 2\), in the order of.*probabilities of shape \(2, 3\)"),
        (np.asarray([0.5, 0.5]), {}, r"probabilities of shape \(2,\) came"),
        (soft_vote(CROWD), {}, r"`predicted` must be an Opinion.*Aggregate came.*\.probability"),
        ([["a", "b"], ["c", "d"]], {}, r"`predicted` must be an Opinion.*list came"),
        (encode([1.0, 0.0]), {}, r"belief of shape \(2,\) came"),
        (np.asarray([[2.0, 1.0], [1.0, 0.0]]), {}, r"1 of 2 are not, first \[2. 1.\] at row 0"),
        (np.asarray([[1.0, 0.0], [1.5, -0.5]]), {}, r"not negative.*row 1\. Logits need a softmax"),
        (np.asarray([[1.0, 0.0], [np.nan, 1]]), {}, r"`predicted` must be probabilities.*1 of 2"),
        (np.asarray([[1.0, 0.0], [np.inf, 0]]), {}, r"`predicted` must be probabilities.*1 of 2"),
        (FINE._replace(belief=np.eye(2)), {}, r"must sum to 1; 2 of 2 opinions do not"),
        (FINE._replace(uncertainty=np.full(2, np.nan)), {}, r"must not be negative; 2 of 2"),
        (FINE._replace(uncertainty=np.full(2, 1e300)), {}, r"must sum to 1; 2 of 2"),
        (FINE._replace(uncertainty=np.ones(3)), {}, r"needs belief.*uncertainty \(3,\)"),
        (FINE, {"ood": np.ones((4, 3)) / 3}, r"`ood` must be an Opinion \(M,\) or.*\(M, 2\)"),
        (FINE, {"target": np.eye(2)}, r"`target` must be an Opinion, since KL.*ndarray came"),
        (FINE, {"target": encode(np.eye(3))}, r"`target` must be an Opinion \(2,\)"),
        (FINE, {"prior_weight": 0}, r"`prior_weight` must be above 0 and finite; 0 came"),
        (FINE, {"prior_weight": math.inf}, r"finite; inf came"),
        (FINE, {"gold": {0: "maybe"}}, r"`gold` names 1 label that the annotations do not have"),
        (FINE, {"gold": [0, 1, 1]}, r"`gold` must be a mapping.*shape \(3,\) came"),
    ],
)
def test_predictions_that_are_none_are_refused(predicted, more, words):
    with pytest.raises(ValueError, match=words):
        evaluate(predicted, CROWD, **more)
