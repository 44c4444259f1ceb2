"""Several labels at once: questions, sets, and what is made of both."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_close, assert_is_opinion, seeds

from slencodings import compare, encode, multi_label
from slencodings.kinds.multilabel import exact_match, jaccard, masi, score_sets, set_alpha
from slencodings.trust import learn_crowd

LABELS = ["a", "b", "c"]


def choices(rng, *, N=6, M=4, per=3):
    """Lists of labels by people of mixed care, with items and annotators."""
    truth, care = rng.random((N, 3)) < 0.4, rng.uniform(0.5, 1, M)
    item = np.repeat(np.arange(N), per)
    who = np.concatenate([rng.choice(M, per, replace=False) for _ in range(N)])
    says = np.where(rng.random((N * per, 3)) < care[who][:, None], truth[item], rng.random(3) < 0.5)
    lists = [[LABELS[k] for k in np.flatnonzero(row)] for row in says]
    return item.tolist(), lists, who.tolist(), says, truth


@given(seeds)
def test_sets_come_back_from_questions(rng):
    item, lists, who, says, _ = choices(rng)
    crowd = multi_label(item, lists, annotator=who, labels=LABELS)
    sets = crowd.sets
    who_chose = crowd.annotations.annotators[sets.annotator]
    known = zip(crowd.items[sets.item], who_chose, sets.chosen.tolist(), strict=True)
    back = {(i, m): row for i, m, row in known}
    assert back == {(i, m): row for i, m, row in zip(item, who, says.tolist(), strict=True)}


@given(seeds)
def test_opinions_by_item_are_binomial_and_one_for_each_label(rng):
    item, lists, who, says, _ = choices(rng)
    crowd = multi_label(item, lists, annotator=who, labels=LABELS)
    a = crowd.annotations
    opinion = crowd.by_item(a.fuse(np.ones(len(a.item)), np.full(2, 0.5)))
    assert_is_opinion(opinion)
    assert opinion.uncertainty.shape == (6, 3)
    yes = np.stack([says[np.asarray(item) == i].sum(0) for i in range(6)])
    assert_close(opinion.belief[..., 1], yes / 4.0)


def test_all_labels_teach_how_far_to_trust_somebody():
    rng = np.random.default_rng(0)
    truth = rng.random((40, 3)) < 0.4
    item = np.repeat(np.arange(40), 4)
    who = np.tile(np.arange(4), 40)
    says = truth[item] ^ (rng.random((160, 3)) < np.asarray([0.05, 0.05, 0.05, 0.5])[who][:, None])
    lists = [[LABELS[k] for k in np.flatnonzero(row)] for row in says]
    crowd = multi_label(item.tolist(), lists, annotator=who.tolist(), labels=LABELS)
    learned = learn_crowd(crowd.annotations)
    assert learned.accuracy.argmin() == 3
    P = crowd.by_item(learned.truth(crowd.annotations)).probability[..., 1]
    assert score_sets(P, crowd, truth).jaccard > 0.9


def test_no_answer_is_no_vote_and_an_empty_one_says_no_to_all():
    crowd = multi_label(["p", "q"], [[], None], labels=LABELS)
    assert crowd.annotations.y.tolist() == [0, 0, 0]
    assert crowd.items.tolist() == ["p", "q"]


def test_the_last_of_two_answers_by_one_person_counts():
    crowd = multi_label(["p", "p"], [["a"], ["b"]], annotator=["x", "x"])
    assert crowd.sets.chosen.tolist() == [[False, True]]
    assert len(multi_label(["p", "p"], [["a"], ["b"]]).annotations.y) == 4


def test_bad_lists_are_refused():
    with pytest.raises(ValueError, match="must be of one length; 1, 2 and 2 came"):
        multi_label(["p"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="1 are not, first 'z'"):
        multi_label(["p"], [["z"]], labels=LABELS)
    with pytest.raises(ValueError, match="at least one label must be possible"):
        multi_label(["p"], [[]])


# Sets


@given(
    st.lists(st.booleans(), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4)
)
def test_scores_of_sets_are_those_of_python_sets(x, y):
    A, B = ({k for k, yes in enumerate(s) if yes} for s in (x, y))
    share = len(A & B) / len(A | B) if A | B else 1.0
    assert jaccard(x, y) == pytest.approx(share)
    assert exact_match(x, y) == float(A == B)
    kind = 1 if A == B else 2 / 3 if A <= B or B <= A else 1 / 3 if A & B else 0
    assert masi(x, y) == pytest.approx(share * kind)
    assert masi(x, y) == masi(y, x)


@pytest.mark.parametrize("distance", ["masi", "jaccard", "exact"])
@given(rng=seeds)
def test_alpha_of_sets_is_one_minus_observed_over_expected_distance(distance, rng):
    item, lists, who, says, _ = choices(rng, N=4)
    crowd = multi_label(item, lists, annotator=who, labels=LABELS)
    alike = {"masi": masi, "jaccard": jaccard, "exact": exact_match}[distance]
    apart = [
        (1 - alike(says[p], says[q]), item[p] == item[q])
        for p, q in product(range(len(item)), repeat=2) if p != q
    ]  # fmt: skip
    observed = np.mean([d for d, same in apart if same])
    expected = np.mean([d for d, _ in apart])
    alpha = 1 - observed / expected if expected else 1.0
    assert set_alpha(crowd, distance=distance) == pytest.approx(alpha)


def test_alpha_of_sets_needs_two_on_an_item_and_a_distance():
    crowd = multi_label(["p", "q"], [["a"], ["b"]], annotator=["x", "y"])
    with pytest.raises(ValueError, match="of 2 answers each is alone"):
        set_alpha(crowd)
    with pytest.raises(ValueError, match="`distance` must be one of masi, jaccard, exact"):
        set_alpha(crowd, distance="hamming")  # pyright: ignore


def test_bad_sets_are_refused():
    crowd = multi_label(["p"], [["a"]], labels=LABELS)
    with pytest.raises(ValueError, match=r"`probability` must be \(1, 3\)"):
        score_sets([[0.5, 0.5]], crowd)
    with pytest.raises(ValueError, match=r"`gold` must be \(1, 3\)"):
        score_sets([[0.5, 0.5, 0.5]], crowd, [[True]])
    with pytest.raises(ValueError, match="sets must be arrays"):
        jaccard([1, 0], [1, 0, 1])


# Training


def test_the_loss_of_torch_is_the_sum_of_binomial_divergences():
    torch = pytest.importorskip("torch")
    from slencodings.torch import kl_loss, multilabel_kl_loss

    rng = np.random.default_rng(0)

    def opinions():
        y = rng.dirichlet([1, 1], (4, 3))
        return encode(torch.tensor(y), torch.tensor(rng.uniform(0.1, 0.9, (4, 3))))

    p, q = opinions(), opinions()
    each = torch.stack([kl_loss(p.rows((slice(None), k)), q.rows((slice(None), k)),
                                reduction="none") for k in range(3)], 1).sum(1)  # fmt: skip
    torch.testing.assert_close(multilabel_kl_loss(p, q, reduction="none"), each)
    torch.testing.assert_close(multilabel_kl_loss(p, q, reduction="sum"), each.sum())
    torch.testing.assert_close(multilabel_kl_loss(p, q, reduction="mean"), each.mean())
    assert float(multilabel_kl_loss(p, p)) == pytest.approx(0)
    with pytest.raises(ValueError, match="binomial opinions"):
        multilabel_kl_loss(p.rows(0), q.rows(0))


# Whole sets in a comparison


def chosen_by_all(rng, *, items=20, people=4):
    true = rng.random((items, 3)) < 0.5
    item, who, sets = [], [], []
    for i in range(items):
        for m in range(people):
            item.append(i)
            who.append(f"p{m}")
            said = true[i] ^ (rng.random(3) < 0.1)
            sets.append([name for name, yes in zip("abc", said, strict=True) if yes])
    return multi_label(item, sets, annotator=who, labels=LABELS)


def test_a_comparison_scores_whole_sets_as_by_hand():
    """What most of three others chose, set by set."""
    crowd = chosen_by_all(np.random.default_rng(0))
    a = crowd.annotations
    found = compare(a, sets=crowd.asked_of, methods=["soft votes"], folds=2, bootstrap=20)
    (row,) = found.rows
    jaccards, same = [], []
    sets = crowd.sets
    for i in range(20):
        mine = sets.chosen[sets.item == i]
        for m in range(4):
            guess = np.delete(mine, m, axis=0).mean(axis=0) > 0.5
            jaccards.append(float(jaccard(mine[m], guess)))
            same.append(float((mine[m] == guess).all()))
    assert row.get("jaccard") == pytest.approx(np.mean(jaccards))
    assert row.get("exact_match") == pytest.approx(np.mean(same))
    assert 0 < row.get("masi", 0) <= row.get("jaccard", 0)
    assert "sets, Jaccard" in str(found)
    plain = compare(a, methods=["soft votes"], folds=2, bootstrap=20)
    assert "jaccard" not in plain.rows[0]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([0], r"each of the 60 questions is about, \(60,\) whole numbers from 0; shape \(1,\)"),
        (np.full(60, -1), "whole numbers from 0; shape"),
        (np.zeros(60), "of float64 came"),
    ],
)
def test_sets_that_make_no_sense_are_refused(sets, words):
    crowd = chosen_by_all(np.random.default_rng(0))
    with pytest.raises(ValueError, match=words):
        compare(crowd.annotations, sets=sets)


def test_sets_are_of_yes_or_no():
    crowd = chosen_by_all(np.random.default_rng(0))
    three = replace(crowd.annotations, labels=np.asarray(["no", "perhaps", "yes"]))
    with pytest.raises(ValueError, match="answers no and yes, in this order; 3 labels came"):
        compare(three, sets=crowd.asked_of)
    soft = replace(crowd.annotations, y=crowd.annotations.vectors)
    with pytest.raises(ValueError, match="soft labels came"):
        compare(soft, sets=crowd.asked_of)


# Sets in evaluate


def test_sets_are_scored_as_scikit_learn_does():
    metrics = pytest.importorskip("sklearn.metrics")
    from slencodings.kinds.multilabel import compare_sets

    rng = np.random.default_rng(0)
    truth, guess = (rng.random((40, 5)) < 0.4 for _ in range(2))
    found = compare_sets(truth, guess)
    assert found.micro_f1 == pytest.approx(metrics.f1_score(truth, guess, average="micro"))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, guess, average="macro"))
    assert found.hamming == pytest.approx(metrics.hamming_loss(truth, guess))
    assert found.exact_match == pytest.approx(metrics.accuracy_score(truth, guess))
    some = np.any(truth | guess, axis=1)
    share = metrics.jaccard_score(truth[some], guess[some], average="samples")
    assert found.jaccard == pytest.approx((share * some.sum() + np.sum(~some)) / len(some))
    none = compare_sets(np.zeros((2, 3)), np.zeros((2, 3)))
    assert none.micro_f1 == none.macro_f1 == none.exact_match == 1
    assert none.hamming == 0


def test_evaluate_scores_sets_against_people_and_against_what_is_true():
    import slencodings as sle
    from slencodings.kinds.multilabel import score_sets

    rng = np.random.default_rng(1)
    chosen = [[name for name in "abc" if rng.random() < 0.5] for _ in range(24)]
    items, who = np.repeat(np.arange(8), 3).tolist(), ["x", "y", "z"] * 8
    crowd = sle.multi_label(items, chosen, annotator=who, labels=["a", "b", "c"])
    yes = rng.random((8, 3))
    P = np.stack([1 - yes, yes], axis=-1).reshape(-1, 2)
    gold = (rng.random((8, 3)) < 0.5).astype(int)
    codes = gold.ravel().copy()
    codes[:2] = -1  # a set of which a part is not known is not scored
    row = sle.evaluate(P, crowd.annotations, codes, sets=crowd.asked_of)
    people = score_sets(yes, crowd)
    assert {name: row[f"set_{name}_crowd"] for name in people._fields} == pytest.approx(
        people._asdict()
    )
    from slencodings.kinds.multilabel import compare_sets

    true = compare_sets(gold[1:], yes[1:] > 0.5)
    assert {name: row[f"set_{name}_gold"] for name in true._fields} == pytest.approx(true._asdict())
    alone = sle.evaluate(P, crowd.annotations, sets=crowd.asked_of)
    assert alone["set_jaccard_gold"] is None
    assert alone["set_jaccard_crowd"] == row["set_jaccard_crowd"]
    assert not any(key.startswith("set_") for key in sle.evaluate(P, crowd.annotations))
    with pytest.raises(ValueError, match="`sets` needs the place of the item"):
        sle.evaluate(P, crowd.annotations, sets=[0])
