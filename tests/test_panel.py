"""Panels of people and models: what models add, how many votes they have, whom they may replace."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import false_discovery_control, ttest_1samp

from slencodings import from_table
from slencodings.annotations import Annotations
from slencodings.datasets import simulated_panel
from slencodings.panel import (
    Panel,
    alternative_annotator_test,
    benjamini_yekutieli,
    choose_people,
    describe_panel,
    effective_votes,
    family,
    learn_panel,
    once_each,
    stated_confidence,
)
from slencodings.panel.confidence import sorts
from slencodings.panel.held_out import best_share, compare_losses, hold_out, mix


def crowd_of(rows: list[tuple[Any, Any, Any]], **columns: Any) -> Annotations:
    item, who, label = zip(*rows, strict=True)
    table = {"item": item, "who": who, "label": label, **columns}
    names: dict[str, Any] = {name: name for name in columns}
    return from_table(table, item="item", annotator="who", label="label", **names)


# ---------------------------------------------------------------------------------- who is who


def test_people_are_those_who_are_no_models_and_the_other_way_round():
    crowd = crowd_of([(1, "ann", 0), (1, "gpt-5", 1), (1, "llama", 1)])
    assert choose_people(crowd, models=["gpt*", "llama"]).tolist() == [True, False, False]
    assert choose_people(crowd, people="ann").tolist() == [True, False, False]
    assert choose_people(crowd, people=np.asarray([True, False, False])).tolist()[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "either `people` or `models`.*neither came"),
        ({"people": ["ann"], "models": ["gpt"]}, "both came"),
        ({"models": ["claude*"]}, r"`models` must name annotators; nobody is called 'claude\*'"),
        ({"people": ["*"]}, "by `people` there is no model"),
        ({"models": ["*"]}, "by `models` there is no person"),
    ],
)
def test_sides_that_cannot_be_told_apart_are_refused(given: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        choose_people(crowd_of([(1, "ann", 0), (1, "gpt", 1)]), **given)


def test_a_family_is_the_letters_a_name_begins_with():
    names = ["gpt-4o", "GPT_5", "anthropic/claude-3", "llama31", "Qwen2.5:7b", "4", ""]
    assert [family(name) for name in names] == ["gpt", "gpt", "claude", "llama", "qwen", "4", ""]


def test_a_source_that_was_asked_several_times_is_one_annotation_by_averaging_fusion():
    rows = [(1, "gpt", "a"), (1, "gpt", "b"), (1, "ann", "a"), (1, "gpt", "a"), (2, "gpt", "b")]
    crowd, repeated = once_each(crowd_of(rows, confidence=[0.9, 0.5, 1.0, 0.7, 0.3]))
    assert repeated == 2
    said: dict[Any, Any] = {
        (crowd.items[i], crowd.annotators[m]): (y.tolist(), c)
        for i, m, y, c in zip(crowd.item, crowd.annotator, crowd.y, crowd.confidence, strict=True)
    }
    a, b = 0.9 / 0.1 + 0.7 / 0.3, 0.5 / 0.5  # evidence: the surer answer counts more
    assert_allclose(said[1, "gpt"][0], [a / (a + b), b / (a + b)])
    assert_allclose(said[1, "gpt"][1], 0.7)
    assert said[1, "ann"] == ([1, 0], 1.0)
    assert said[2, "gpt"] == ([0, 1], 0.3)


def test_asking_several_times_for_the_same_answer_changes_nothing():
    rows = [(1, "gpt", "a"), (1, "ann", "b"), (2, "gpt", "b")]
    once, twice = crowd_of(rows), crowd_of(rows + rows)
    merged, repeated = once_each(twice)
    assert repeated == 3
    for name in ("item", "annotator", "y"):
        assert getattr(merged, name).tolist() == getattr(once, name).tolist()
    assert once_each(once) == (once, 0)


# ---------------------------------------------------------------- the alternative annotator test


def by_hand(
    people: dict[str, dict[int, Any]], judge: dict[int, Any], epsilon: float, *, numbers: bool
) -> tuple[float, float]:
    """The published procedure person by person, in loops and exact fractions."""
    answered: dict[int, list[str]] = {}
    for name, answers in people.items():
        for item in answers:
            answered.setdefault(item, []).append(name)

    def alignment(answer: Any, others: list[Any]) -> Any:
        if numbers:  # the order of roots is that of squares
            return -sum(Fraction(answer - x) ** 2 for x in others) / len(others)
        return Fraction(sum(answer == x for x in others), len(others))

    p_values, advantages = [], []
    for name, answers in people.items():
        d, as_good = [], []
        for item, answer in answers.items():
            others = [people[x][item] for x in answered[item] if x != name]
            if item not in judge or not others:
                continue
            own, model = alignment(answer, others), alignment(judge[item], others)
            d.append(int(own >= model) - int(model >= own))
            as_good.append(int(model >= own))
        if len(d) >= 30:
            p_values.append(ttest_1samp(d, epsilon, alternative="less").pvalue)
            advantages.append(sum(as_good) / len(as_good))
    won = false_discovery_control(p_values, method="by") <= 0.05
    return float(np.mean(won)), float(np.mean(advantages))


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_alternative_annotator_test_is_the_published_procedure(seed: int, numbers: bool):
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, 90)

    def answer(right: float, share: float) -> dict[int, int]:
        seen = np.flatnonzero(rng.random(90) < share)
        wrong = rng.integers(1, 6, 90)
        return {int(i): int(truth[i] if rng.random() < right else wrong[i]) for i in seen}

    people = {f"p{n}": answer(0.3 + 0.1 * n, 0.2 + 0.2 * n) for n in range(5)}
    judge = answer(0.6, 0.9)
    rows = [(i, who, x) for who, said in people.items() for i, x in said.items()]
    rows += [(i, "gpt", x) for i, x in judge.items()]
    crowd = crowd_of(rows)
    found = alternative_annotator_test(
        crowd,
        "gpt",
        choose_people(crowd, models=["gpt"]),
        alignment="neg_rmse" if numbers else "accuracy",
        epsilon=0.1,
    )
    expected = by_hand(people, judge, 0.1, numbers=numbers)
    assert_allclose((found.winning_rate, found.advantage_probability), expected, atol=1e-12)
    assert found.passed == (found.winning_rate >= 0.5)
    assert 0 < len(found.people) < 5


def test_the_test_holds_a_worked_example():
    """Three people and 40 items; ann says what bob says, eve says otherwise on the last ten.

    The judge says what ann and bob say. Of ann and bob it is as near to the others everywhere, so
    d = 0 without spread and p = 0. Of eve d = 0 on 30 items and -1 on ten.
    """
    rows = [(i, who, "a") for i in range(40) for who in ("ann", "bob", "gpt")]
    rows += [(i, "eve", "a" if i < 30 else "b") for i in range(40)]
    crowd = crowd_of(rows)
    found = alternative_annotator_test(
        crowd, "gpt", choose_people(crowd, models=["gpt"]), epsilon=0.2
    )
    assert found.winning_rate == found.advantage_probability == 1
    eve = next(person for person in found.people if person.annotator == "eve")
    assert (eve.items, eve.person, eve.model) == (40, 0.75, 1.0)
    d = [0.0] * 30 + [-1.0] * 10
    assert_allclose(eve.p_value, ttest_1samp(d, 0.2, alternative="less").pvalue)
    assert [person.p_value for person in found.people[:2]] == [0, 0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"judge": "claude"}, "`judge` must be one of the annotators; 'claude' came"),
        ({"min_items": 50}, r"needs a person with at least min_items=50 items.*the most are 40"),
        ({"alignment": "neg_rmse"}, "needs labels that are numbers; 'a', 'b' came"),
        ({"alignment": "kappa"}, "`alignment` must be one of accuracy, neg_rmse; 'kappa' came"),
    ],
)
def test_what_cannot_be_tested_is_refused(given: dict[str, Any], words: str):
    crowd = crowd_of([(i, who, "ab"[i % 2]) for i in range(40) for who in ("ann", "bob", "gpt")])
    people = choose_people(crowd, models=["gpt"])
    with pytest.raises(ValueError, match=words):
        alternative_annotator_test(crowd, **({"judge": "gpt", "people": people} | given))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.5))
def test_benjamini_and_yekutieli_reject_as_scipy_adjusts(p_values: list[float], rate: float):
    adjusted = false_discovery_control(p_values, method="by")
    rejected = benjamini_yekutieli(np.asarray(p_values), rate)
    sure = np.abs(adjusted - rate) > 1e-9
    assert rejected[sure].tolist() == (adjusted <= rate)[sure].tolist()


# -------------------------------------------------------------------------------- effective votes


def nine(copied: float, **how: Any) -> tuple[Annotations, Any]:
    judges = {f"gpt-{n}": 0.8 for n in range(9)}
    panel = simulated_panel(judges=judges, copied=copied, rng=1, **how)
    return panel.annotations, panel.people


def test_nine_copies_are_one_vote_and_nine_strangers_nine():
    (copies,) = effective_votes(*nine(1.0), bootstrap=20)
    assert (copies.family, len(copies.judges), copies.correlation) == ("gpt", 9, 1)
    assert (copies.votes, copies.votes_low, copies.votes_high) == (1, 1, 1)
    (strangers,) = effective_votes(*nine(0.0, n_items=600), bootstrap=100)
    assert strangers.votes > 7
    assert strangers.votes_high == pytest.approx(9)
    (between,) = effective_votes(*nine(0.5, n_items=600), bootstrap=20)
    assert copies.votes < between.votes < strangers.votes
    # Half the time each says what all would: a pair agrees for that reason on a quarter of items.
    assert between.correlation == pytest.approx(0.25, abs=0.06)


def test_effective_votes_are_between_one_and_all():
    panel = simulated_panel(120, rng=3)
    for row in effective_votes(panel.annotations, panel.people, bootstrap=0):
        assert 1 <= row.votes <= len(row.judges)
        assert row.votes_low is None
    names = [row.family for row in effective_votes(panel.annotations, panel.people, bootstrap=0)]
    assert names == ["gpt", "all models"]


def test_copies_of_a_soft_answer_are_one_vote():
    rows = [(i, who, i % 2) for i in range(40) for who in ("ann", "bob", "m-1", "m-2")]
    crowd = crowd_of(rows)
    share = np.random.default_rng(0).random(40)[crowd.item]
    crowd = replace(crowd, y=np.stack([share, 1 - share], axis=1))
    (row,) = effective_votes(crowd, choose_people(crowd, models=["m-*"]), bootstrap=0)
    assert row.votes == pytest.approx(1)


def test_families_can_be_named_and_are_made_of_models():
    panel = simulated_panel(80, rng=0)
    named = {"mine": ["llama", "dice"], "one": ["gpt-mini"]}
    (row,) = effective_votes(panel.annotations, panel.people, families=named, bootstrap=0)
    assert (row.family, row.judges) == ("mine", ["llama", "dice"])
    with pytest.raises(ValueError, match=r"`families` must be made of models; 1 of.*first 'p00'"):
        effective_votes(panel.annotations, panel.people, families={"mine": ["p00", "llama"]})


# ------------------------------------------------------------------------------- held-out votes


TWELVE = crowd_of([(i, "ann", i % 3) for i in range(12)])


@given(st.integers(0, 2**32 - 1))
def test_the_share_of_models_has_the_lowest_loss_of_all(seed: int):
    rng = np.random.default_rng(seed)
    votes = replace(TWELVE, y=rng.integers(0, 3, 12))
    alone, together = rng.dirichlet(np.ones(3), (2, 12))
    m = best_share(votes, alone, together)
    said = np.arange(12), votes.y

    def loss(share: float) -> float:
        return -float(np.sum(np.log(((1 - share) * alone + share * together)[said])))

    assert loss(m) <= min(loss(x) for x in np.linspace(0, 1, 21)) + 1e-6


def test_what_other_folds_lose_by_models_gives_them_no_share():
    votes = crowd_of([(i, "ann", i % 2) for i in range(20)])
    right = np.where(np.eye(2)[votes.y] == 1, 0.9, 0.1)
    mixed = mix(votes, votes.item % 2, right, 1 - right)
    assert mixed.share.tolist() == [0, 0]
    assert_allclose(mixed.chances, right)
    assert mix(votes, votes.item % 2, 1 - right, right).share.tolist() == [1, 1]


def test_a_gain_is_paired_by_items():
    item = np.repeat(np.arange(30), 3)
    loss = np.random.default_rng(0).random(90)
    score = compare_losses(item, loss, loss + 0.25, bootstrap=50, seed=0)
    assert score[3:] == pytest.approx((0.25, 0.25, 0.25))
    assert score.votes_low is not None
    assert score.votes_high is not None
    assert score.votes_low < score.votes < score.votes_high
    assert score.better
    assert not compare_losses(item, loss, loss, bootstrap=50, seed=0).better
    assert compare_losses(item, loss, loss, bootstrap=0, seed=0).gain_low is None


def test_only_items_that_two_people_answered_are_held_out_and_some_are_needed():
    panel = simulated_panel(30, people_per_item=2, rng=0)
    alone = panel.annotations.item == 4
    first = np.flatnonzero(alone & panel.people[panel.annotations.annotator])[0]
    keep = np.arange(len(alone)) != first
    held = hold_out(panel.annotations.rows(keep), panel.people, folds=3)
    assert held.fold[4] == -1
    assert set(held.fold.tolist()) == {-1, 0, 1, 2}
    assert len(held.votes) == 58
    few = panel.annotations.rows(panel.annotations.item < 5)
    with pytest.raises(ValueError, match="folds=3 and 5 such items came"):
        hold_out(few, panel.people, folds=3)


# ---------------------------------------------------------------------------------- the panel


@pytest.fixture(scope="module")
def described() -> Panel:
    judges = {"good": 0.95, "dice": 1 / 3}
    panel = simulated_panel(80, people=3, people_per_item=2, judges=judges, copied=0, rng=0)
    return describe_panel(
        panel.annotations,
        people=panel.people,
        costs={"good": 2.0, "dice": 1.0},
        folds=2,
        bootstrap=200,
    )


def test_a_good_model_helps_and_dice_do_not(described: Panel):
    good, dice = sorted(described.judges, key=lambda judge: str(judge.judge), reverse=True)
    assert good.alone.better
    assert good.given_others.better
    assert not dice.alone.better
    assert not dice.given_others.better
    assert described.together.better
    assert 0 < described.share <= 1
    assert good.test is not None
    assert good.test.passed
    assert dice.test is not None
    assert not dice.test.passed


def test_gains_are_differences_of_losses_and_leaving_one_of_two_out_leaves_the_other(
    described: Panel,
):
    assert described.alone.gain == 0
    assert_allclose(described.together.gain, described.alone.votes - described.together.votes)
    good, dice = sorted(described.judges, key=lambda judge: str(judge.judge), reverse=True)
    assert_allclose(dice.given_others.gain, good.alone.votes - described.together.votes)


def test_a_panel_with_some_models_takes_what_was_chosen_for_all_of_them():
    crowd = simulated_panel(40, judges={"good": 0.9, "dice": 0.3}, rng=1)
    held = hold_out(crowd.annotations, crowd.people, folds=2)
    every = held.learn(held.judges, lambda: None)
    for like, one in zip(every, held.learn(held.judges[:1], lambda: None, every), strict=True):
        assert like.model is not None
        assert one.model is not None
        assert one.ridge == like.ridge
        assert one.model.shrinking == like.model.shrinking
        assert one.model.correlation == like.model.correlation
        assert (one.through_truth > 0) == (like.through_truth > 0)


def test_the_path_takes_what_gains_most_for_its_price_and_stops(described: Panel):
    assert [step.judge for step in described.path][:2] == [None, "good"]
    assert [step.cost for step in described.path][:2] == [0, 2]
    votes = [step.score.votes for step in described.path]
    assert votes == sorted(votes, reverse=True)


def test_people_are_cut_from_none_to_all_and_models_help_less_beside_more(described: Panel):
    assert [row.people for row in described.people] == [0, 1]
    none, one = described.people
    assert none.predicted == one.predicted == described.about.predicted
    assert none.alone > one.alone
    assert none.score.gain > one.score.gain > 0
    # With all others there it is the same prediction as that of the whole panel.
    assert_allclose(one.alone, described.alone.votes)
    assert_allclose(one.score.votes, described.together.votes)


def test_rows_are_plain_values_and_the_text_says_first_what_to_do(described: Panel):
    rows = described.to_rows()
    assert [row["part"] for row in rows if row["part"] != "path"] == (
        ["panel"] * 2 + ["judge"] * 2 + ["family"] + ["people"] * 2
    )
    plain = (str, int, float, bool, list, type(None))
    assert all(isinstance(x, plain) for row in rows for x in row.values())
    text = str(described)
    assert text.startswith("Use the models beside people: log-loss ")
    assert "Keep good: " in text or "Keep good and dice: " in text
    assert "By the alternative annotator test good may stand in for a person" in text
    assert "the most that could be tried" in text


def test_models_that_only_guess_are_left_out_and_never_make_targets_worse():
    panel = simulated_panel(60, judges={"dice-1": 1 / 3, "dice-2": 1 / 3}, copied=1, rng=2)
    learned = learn_panel(panel.annotations, people=panel.people, folds=2)
    assert learned.share < 0.2
    without = replace(learned, share=0.0).votes(panel.annotations)
    assert_allclose(without.belief, learned.votes_of_people(panel.annotations).belief)


def test_opinions_with_models_lie_between_those_of_people_and_of_everybody():
    judges = {"good": 0.95}
    panel = simulated_panel(60, people_per_item=2, judges=judges, rng=0)
    calls: list[tuple[int, int]] = []
    learned = learn_panel(
        panel.annotations,
        models=["good"],
        folds=2,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(n, 6) for n in range(1, 7)]
    assert learned.gain > 0
    opinion, alone = learned.votes(panel.annotations), learned.votes_of_people(panel.annotations)
    both = learned.together.votes(panel.annotations)
    assert_allclose(
        opinion.probability,
        (1 - learned.share) * alone.probability + learned.share * both.probability,
    )
    assert_allclose(opinion.belief.sum(axis=1) + opinion.uncertainty, 1)


@pytest.mark.parametrize("costs", [{"good": 1.0}, {"good": 1.0, "dice": 0.0}])
def test_every_model_needs_a_price(costs: dict[str, float]):
    panel = simulated_panel(40, judges={"good": 0.9, "dice": 0.3}, rng=0)
    with pytest.raises(ValueError, match=r"`costs` must have a price above 0.*first 'dice'"):
        describe_panel(panel.annotations, people=panel.people, costs=costs)


# ------------------------------------------------------------------------------ stated confidence


@given(
    st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=2, max_size=12),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=12, max_size=12),
)
def test_confidence_sorts_as_often_as_pairs_are_in_order(stated: list[float], agreed: list[float]):
    pairs = [
        (s > t) + (s == t) / 2 if x > y else (t > s) + (s == t) / 2
        for (s, x), (t, y) in combinations(zip(stated, agreed, strict=False), 2)
        if x != y
    ]
    found = sorts(np.asarray(stated), np.asarray(agreed[: len(stated)]))
    if not pairs or len(set(stated)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(sum(pairs) / len(pairs))


def test_confidence_is_held_against_how_often_people_agree():
    rng = np.random.default_rng(0)
    rows, stated = [], []
    for i in range(200):
        sure = rng.random() < 0.5
        label = 0 if rng.random() < (0.9 if sure else 0.5) else 1
        rows += [(i, "ann", 0), (i, "bob", 0), (i, "gpt", label)]
        stated += [1.0, 1.0, 0.95 if sure else 0.85]
    crowd = crowd_of(rows, confidence=stated)
    people = choose_people(crowd, models=["gpt"])
    (row,) = stated_confidence(crowd, people, bootstrap=100)
    assert (row.judge, row.source, row.answers) == ("gpt", "stated", 200)
    assert row.overconfidence == pytest.approx(row.stated - row.earned)
    assert row.overconfidence_low is not None
    assert row.overconfidence_low > 0.1
    assert row.sorts is not None
    assert row.sorts > 0.6
    unknown = np.where(crowd.item < 190, np.nan, crowd.confidence)
    known = stated_confidence(
        crowd, people, sources={"few": unknown, "log-probability": crowd.confidence}, bootstrap=0
    )
    assert [(row.source, row.overconfidence_low) for row in known] == [("log-probability", None)]
    other_scale = replace(crowd, stated=crowd.confidence * 5)
    assert stated_confidence(other_scale, people) == []
