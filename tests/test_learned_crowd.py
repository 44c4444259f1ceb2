"""One model of a crowd: what people would say, what is true, and who is right how often."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crowds import crowd, make
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from real_crowds import rows_of

from slencodings import from_table
from slencodings.aggregate import shrunk_dawid_skene
from slencodings.aggregate.shrunk import confusions, crowd_confusion, expected_confusions, habits
from slencodings.annotations import Annotations
from slencodings.opinion import check
from slencodings.trust import Crowd, crowd_to_json, learn_crowd
from slencodings.trust.objective import Objective
from slencodings.trust.running_sums import OrderedGroups
from slencodings.trust.worth import Learned, Ridge, Votes

seeds = st.integers(0, 2**32 - 1)


def population(
    seed: int = 0,
    *,
    N: int = 200,
    per: int = 5,
    people: int = 12,
    labels: int = 3,
    spammers: int = 2,
) -> tuple[Annotations, np.ndarray, np.ndarray]:
    """A crowd with a known truth, and how often each is right; the last ones guess."""
    rng = np.random.default_rng(seed)
    skill = np.r_[rng.uniform(0.6, 0.95, people - spammers), np.full(spammers, 1 / labels)]
    truth = rng.integers(0, labels, N)
    item = np.repeat(np.arange(N), per)
    who = np.concatenate([rng.choice(people, per, replace=False) for _ in range(N)])
    wrong = (truth[item] + rng.integers(1, labels, len(item))) % labels
    y = np.where(rng.random(len(item)) < skill[who], truth[item], wrong)
    return make(item, who, y, N=N, M=people, K=labels), truth, skill


@pytest.fixture(scope="module")
def known() -> tuple[Annotations, np.ndarray, np.ndarray, Crowd]:
    annotations, truth, skill = population()
    return annotations, truth, skill, learn_crowd(annotations)


def some_votes(rng: np.random.Generator, *, soft: bool = False) -> Votes:
    a = crowd(rng, R=40, soft=soft, K=3)
    a = a.rows(np.argsort(a.item, kind="stable"))
    R = len(a.item)
    vote, label = np.nonzero(a.vectors)
    return Votes(
        item=a.item,
        annotator=a.annotator,
        level=rng.integers(0, 2, R),
        scored=rng.integers(0, 2, R).astype(float),
        vote=vote,
        label=label,
        share=a.vectors[vote, label],
        all_say=rng.random(len(vote)),
        earlier_say=rng.random(len(vote)),
        base_rate=np.asarray([0.2, 0.3, 0.5]),
        sizes=(12, 5, 2),
    )


def some_parameters(rng: np.random.Generator, *, meaning: bool = False) -> Learned:
    apart = rng.normal(size=(3, 3)) if meaning else None
    return Learned(rng.normal(), rng.normal(size=5), rng.normal(size=2), rng.normal(), apart)


def pack(at: Learned) -> np.ndarray:
    apart = np.zeros(0) if at.apart is None else at.apart.ravel()
    return np.r_[at.scale, at.annotator, at.level, at.logit, apart]


def unpack(x: np.ndarray) -> Learned:
    apart = x[9:].reshape(3, 3) if len(x) > 9 else None
    return Learned(float(x[0]), x[1:6], x[6:8], float(x[8]), apart)


@given(seeds)
def test_running_sums_are_rounded_as_the_sum_of_all_elements_at_most(seed):
    rng = np.random.default_rng(seed)
    value = rng.random(40) * 10.0 ** rng.integers(-12, 12, 40)
    group = rng.integers(0, 12, 40)
    bound = (len(value) + 2) * np.finfo(float).eps * value.sum()
    found = OrderedGroups.of(group).others_and_before(value)
    for q in range(40):
        others = [j for j in range(40) if group[j] == group[q] and j != q]
        before = [j for j in others if j < q]
        exact = [math.fsum(value[j] for j in some) for some in (others, before)]
        assert_allclose(found[:, q], exact, rtol=0, atol=bound)


@given(seeds, st.booleans())
def test_others_in_a_group_and_those_before_and_after_are_added_up(seed, in_order):
    rng = np.random.default_rng(seed)
    group, value, later = rng.integers(0, 4, 15), rng.random((2, 15)), rng.random((2, 15))
    group = np.sort(group) if in_order else group
    groups = OrderedGroups.of(group)
    others, before = groups.others_and_before(value)
    assert_array_equal(groups.others_and_before(value[0])[:, None], [others[:1], before[:1]])
    felt = groups.others_and_after(value, later)
    for q in range(15):
        same = group == group[q]
        same[q] = False
        assert_allclose(others[:, q], value[:, same].sum(axis=1), atol=1e-12)
        assert_allclose(before[:, q], value[:, :q][:, same[:q]].sum(axis=1), atol=1e-12)
        after = later[:, q:][:, same[q:]].sum(axis=1)
        assert_allclose(felt[:, q], others[:, q] + after, atol=1e-12)


@given(seeds, st.booleans(), st.booleans())
def test_every_vote_is_predicted_from_all_others_and_from_those_before(seed, soft, meaning):
    """Letter by letter: num, den and loss of each vote, from a loop over the others."""
    rng = np.random.default_rng(seed)
    v, at = some_votes(rng, soft=soft), some_parameters(rng, meaning=meaning)
    C = np.eye(3) if at.meaning is None else at.meaning
    assert_allclose(C.sum(axis=1), 1)
    m = 1 / (1 + np.exp(-at.logit))
    w = [
        np.exp(at.scale + at.annotator[i] + at.level[j])
        for i, j in zip(v.annotator, v.level, strict=False)
    ]
    expected = np.zeros(len(v.item))
    for say, others in (
        (v.all_say, lambda q: [j for j in range(len(w)) if v.item[j] == v.item[q] and j != q]),
        (v.earlier_say, lambda q: [j for j in range(q) if v.item[j] == v.item[q]]),
    ):
        for b in range(len(v.vote)):
            q, k = v.vote[b], v.label[b]
            S = sum(w[j] for j in others(q))
            E = sum(
                w[v.vote[c]] * v.share[c] * C[v.label[c], k]
                for c in range(len(v.vote))
                if v.vote[c] in others(q)
            )
            P = (v.base_rate[k] + (1 - m) * E + m * S * say[b]) / (1 + S)
            expected[q] -= v.share[b] * np.log(P) / 2
    losses = Objective.of(v).losses(at)
    assert_allclose(losses, expected, rtol=1e-9, atol=1e-9)


@given(seeds, st.booleans(), st.booleans())
def test_the_gradient_is_that_of_finite_differences(seed, soft, meaning):
    rng = np.random.default_rng(seed)
    objective = Objective.of(some_votes(rng, soft=soft))
    at = some_parameters(rng, meaning=meaning)
    ridge = Ridge(0.5, 0.2, 0.3, 0.4, 0.6)
    x, h = pack(at), 1e-6
    numeric = [
        (objective(unpack(x + h * e), ridge)[0] - objective(unpack(x - h * e), ridge)[0]) / (2 * h)
        for e in np.eye(len(x))
    ]
    assert_allclose(pack(objective(at, ridge)[1]), numeric, rtol=1e-5, atol=1e-7)


@given(seeds, st.booleans())
def test_the_mean_loss_is_that_of_the_votes_that_are_scored(seed, soft):
    rng = np.random.default_rng(seed)
    v, at = some_votes(rng, soft=soft), some_parameters(rng)
    objective = Objective.of(v)
    loss = objective(at, Ridge(0, 0, 0, 0, 0))[0]
    assert_allclose(loss, v.scored @ objective.losses(at) / max(v.scored.sum(), 1), atol=1e-12)


@given(seeds, st.booleans(), st.booleans())
def test_ridges_are_added_to_the_losses_before_the_mean_is_taken(seed, truth, scored):
    rng = np.random.default_rng(seed)
    v, at = some_votes(rng), some_parameters(rng, meaning=True)
    v = v if scored else replace(v, scored=0 * v.scored)
    # Where votes are not read as truth, there is nothing about that to hold back.
    at = at if truth else at._replace(logit=-np.inf)
    objective, apart = Objective.of(v), at.apart
    assert apart is not None
    held_back = (
        0.5 * np.sum(at.annotator**2)
        + 0.2 * np.sum(at.level**2)
        + 0.3 * (at.scale + np.mean(at.annotator) + np.mean(at.level)) ** 2
        + 0.4 * (at.logit**2 if truth else 0)
        + 0.6 * np.sum(apart**2)
    )
    expected = (v.scored @ objective.losses(at) + held_back) / max(v.scored.sum(), 1)
    assert_allclose(objective(at, Ridge(0.5, 0.2, 0.3, 0.4, 0.6))[0], expected, rtol=1e-12)


def test_confusions_are_shrunk_to_what_the_crowd_confuses_at_the_annotators_accuracy():
    mass = np.asarray([[[30.0, 10.0], [5.0, 35.0]], [[0.0, 0.0], [0.0, 0.0]]])
    used = mass.sum(axis=1)
    expected = expected_confusions(mass, habits(used))
    few, many = confusions(mass, expected, 0.0), confusions(mass, expected, 1e9)
    assert_allclose(few[0], mass[0] / mass[0].sum(axis=1, keepdims=True), rtol=1e-6)
    # Nothing is known of the second, so it is as the crowd on average.
    assert_allclose(many[1], crowd_confusion(mass), rtol=1e-6)
    assert np.all(many[0] > 0)
    assert_allclose(many.sum(axis=2), 1)


def test_a_better_annotator_is_expected_to_be_better_on_labels_they_never_saw():
    rng = np.random.default_rng(0)
    mass = np.zeros((3, 2, 2))
    mass[0], mass[1] = [[90, 10], [10, 90]], [[60, 40], [40, 60]]
    mass[2] = [[60, 0], [0, 0]]
    E = confusions(mass, expected_confusions(mass, habits(mass.sum(axis=1) + rng.random())), 10.0)
    assert E[2, 1, 1] > E[0, 1, 1] > E[1, 1, 1]


@pytest.mark.parametrize(
    ("N", "per_item", "h"),
    [(40, 1, 1.0), (40, 3, 1.0), (900, 2, 390 / 900), (900, 3, 390 / 2700), (900, 5, 390 / 9000)],
)
def test_labels_are_as_common_as_they_are_said_the_more_the_fewer_votes_there_are(N, per_item, h):
    rng = np.random.default_rng(0)
    item, who = np.repeat(np.arange(N), per_item), np.tile(np.arange(per_item), N)
    annotations = make(item, who, rng.choice(3, N * per_item, p=[0.6, 0.3, 0.1]))
    found = shrunk_dawid_skene(annotations, n_iter=3)
    v = annotations.sums().sum(axis=0) / (N * per_item)
    expected = (1 - h) * found.probability.mean(axis=0) + h * v
    np.testing.assert_allclose(found.details["prior"], expected, rtol=1e-12)


@pytest.mark.parametrize("strength", [1.0, 3.0, 30.0])
def test_the_shrunk_model_finds_the_truth_of_a_crowd_that_can_be_told(strength):
    annotations, truth, _ = population(3)
    found = shrunk_dawid_skene(annotations, prior_strength=strength)
    assert np.mean(found.probability.argmax(axis=1) == truth) > 0.85
    assert found.details["converged"]


def test_a_crowd_with_one_label_is_always_right():
    found = shrunk_dawid_skene(make([0, 0, 1], [0, 1, 0], [0, 0, 0], K=1))
    assert_array_equal(found.probability, 1)
    assert_array_equal(found.reliability, 1)


def test_the_truth_is_found_as_often_as_by_dawid_and_skene_and_believed_less(known):
    annotations, truth, _, learned = known
    P = learned.truth(annotations).probability
    hard = shrunk_dawid_skene(annotations).probability
    right = P.argmax(axis=1) == truth
    assert right.mean() >= np.mean(hard.argmax(axis=1) == truth) - 0.01
    assert abs(P.max(axis=1).mean() - right.mean()) < 0.1
    assert P.max(axis=1).mean() < hard.max(axis=1).mean()


def test_people_are_ranked_by_how_often_they_are_right_and_guessers_may_be_guessing(known):
    _, _, skill, learned = known
    assert np.corrcoef(learned.accuracy, skill)[0, 1] > 0.95
    low, high = learned.above_chance_interval()
    assert np.all(low <= learned.above_chance)
    assert np.all(learned.above_chance <= high)
    assert np.all(low[-2:] <= 0)
    assert np.all(high[-2:] >= 0)
    assert np.all(low[:-2] > 0)


def test_every_annotation_takes_uncertainty_away_from_what_people_would_say(known):
    annotations, *_, learned = known
    last = np.ones(len(annotations.items))
    for n in range(6):
        shown = annotations.rows(np.arange(len(annotations.item)) % 5 < n)
        opinion = learned.votes(shown)
        check(opinion)
        check(learned.truth(shown))
        assert np.all(opinion.uncertainty <= last) if n == 0 else np.all(opinion.uncertainty < last)
        last = opinion.uncertainty


def test_an_item_without_annotations_is_vacuous_in_both_readings(known):
    annotations, *_, learned = known
    nothing = annotations.rows(np.zeros(0, dtype=int))
    for opinion, prior in (
        (learned.votes(nothing), learned.base_rate),
        (learned.truth(nothing), learned.model.prior),
    ):
        assert_array_equal(opinion.uncertainty, 1)
        assert_allclose(opinion.probability, np.tile(prior, (200, 1)), atol=1e-15)


def test_one_annotation_makes_an_item_as_certain_as_its_annotator_is_worth(known):
    annotations, *_, learned = known
    one = annotations.rows(np.arange(len(annotations.item)) % 5 == 0)
    assert_allclose(learned.votes(one).uncertainty, 1 / (1 + learned.worth[one.annotator]))


def test_people_who_say_the_same_are_in_no_conflict_and_the_others_are(known):
    annotations, *_, learned = known
    votes = annotations.sums()
    unanimous = np.sum(votes > 0, axis=1) == 1
    conflict = learned.conflict(annotations)
    assert unanimous.any()
    assert not unanimous.all()
    assert_array_equal(conflict[unanimous], 0)
    assert np.all((conflict[~unanimous] > 0) & (conflict[~unanimous] <= 1))
    assert learned.conflict(make([0, 0], [0, 1], [0, 1], M=12, K=3))[0] > 0


@pytest.mark.parametrize("soft", [False, True])
def test_what_the_others_say_is_what_is_said_without_the_annotation(soft):
    rng = np.random.default_rng(5)
    annotations = crowd(rng, R=120, soft=soft)
    learned = learn_crowd(annotations)
    told = learned.predict(annotations)
    truth = learned.truth_of(learned.evidence_of_others(annotations)).probability
    own = learned.predict_own(annotations)
    for q in range(0, 120, 17):
        rest = annotations.rows(np.arange(120) != q)
        i = annotations.item[q]
        assert_allclose(told[q], learned.votes(rest).probability[i], atol=1e-12)
        assert_allclose(truth[q], learned.truth(rest).probability[i], atol=1e-12)
    assert_allclose(own.sum(axis=1), 1)


def test_this_annotators_vote_is_anybodys_moved_by_what_is_special_about_them():
    annotations = crowd(np.random.default_rng(5), R=120)
    learned = learn_crowd(annotations)
    votes, own = learned.predict(annotations), learned.predict_own(annotations)
    model = learned.model
    assert model is not None
    evidence = learned.evidence_of_others(annotations)
    assert evidence.log_likelihood is not None
    truth = model.posterior(evidence.log_likelihood, evidence.n)
    for q in range(0, 120, 13):
        said = model.confusion[annotations.annotator[q]]
        by_truth = [sum(truth[q, c] * said[c, k] for c in range(3)) for k in range(3)]
        usual = [sum(truth[q, c] * model.crowd[c, k] for c in range(3)) for k in range(3)]
        moved = [votes[q, k] * by_truth[k] / usual[k] for k in range(3)]
        expected = [0.75 * m / sum(moved) + 0.25 * t for m, t in zip(moved, by_truth, strict=True)]
        assert_allclose(own[q], expected, atol=1e-12)


def test_who_has_habits_of_their_own_is_predicted_better_than_anybody():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    item, annotator = np.divmod(np.arange(300 * 6), 6)
    # One of six says the next label, where it is the first.
    y = np.where((annotator == 0) & (truth[item] == 0), 1, truth[item])
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 3, len(y)), y)
    train, test = (make(item[k], annotator[k], y[k], K=3) for k in (item < 200, item >= 200))
    learned = learn_crowd(train)
    q = np.flatnonzero(test.annotator == 0)
    own, anybody = (p[q, test.y[q]] for p in (learned.predict_own(test), learned.predict(test)))
    assert np.mean(np.log(own)) > np.mean(np.log(anybody)) + 0.2


def test_the_same_annotations_teach_the_same_again():
    annotations, *_ = population(0, N=20)
    one, other = (crowd_to_json(learn_crowd(annotations)) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("crowd", range(4))
def test_the_order_of_rows_changes_nothing(crowd):
    annotations, *_ = population(crowd, N=20)
    one = learn_crowd(annotations)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(annotations.item))
        shuffled = annotations.rows(order)
        other = learn_crowd(shuffled)
        assert_allclose(one.worth, other.worth, rtol=1e-9)
        beliefs = (
            learned.votes(a).belief for learned, a in ((one, annotations), (other, shuffled))
        )
        assert_allclose(*beliefs, rtol=1e-9, atol=1e-12)
        assert_allclose(one.prior_weight, other.prior_weight, rtol=1e-6)


def test_confidence_that_is_earned_is_worth_more():
    annotations, truth, _ = population(2)
    rng = np.random.default_rng(0)
    hit = annotations.y == truth[annotations.item]
    stated = np.where(hit, rng.choice([1, 3], len(hit), p=[0.2, 0.8]), rng.choice([1, 3], len(hit)))
    learned = learn_crowd(replace(annotations, stated=stated.astype(float)))
    assert_array_equal(learned.levels, [1, 3])
    assert learned.share[0] < learned.share[1] == 1
    with pytest.raises(ValueError, match="`stated` is needed"):
        learned.votes(annotations)


def test_what_was_chosen_for_a_like_crowd_is_not_chosen_anew(known):
    annotations, _, _, whole = known
    some = learn_crowd(annotations.rows(annotations.item % 3 > 0), ridge=Ridge(annotator=7.0))
    found = learn_crowd(annotations, like=some)
    assert found.ridge == some.ridge
    assert (found.through_truth > 0) == (some.through_truth > 0)
    assert found.votes_say_more == some.votes_say_more
    assert "held_out" in some.losses
    assert "held_out" not in found.losses
    assert found.model is not None
    assert some.model is not None
    assert found.model.correlation == some.model.correlation
    assert found.model.shrinking == some.model.shrinking
    assert_allclose(learn_crowd(annotations, like=whole).worth, whole.worth, rtol=2e-3)
    assert whole.through_truth > 0
    assert learn_crowd(annotations, like=replace(whole, through_truth=0.0)).through_truth == 0


def test_somebody_new_counts_as_the_typical_annotator(known):
    annotations, *_, learned = known
    new = replace(annotations, annotators=np.asarray([f"new {m}" for m in range(12)]))
    assert_allclose(learned.votes(new).uncertainty, 1 / (1 + 5 * learned.typical_worth))
    assert np.all(np.isfinite(learned.truth(new).belief))


def test_only_the_votes_of_those_who_are_scored_are_predicted():
    """Two machines agree with each other and not with people; as others they still tell."""
    annotations, *_ = population(4, spammers=0)
    people = np.arange(12) < 10
    machine = ~people[annotations.annotator]
    y = np.where(machine, 0, annotations.y)
    panel = replace(annotations, y=y)
    by_mask, by_name = learn_crowd(panel, scored=people), learn_crowd(panel, scored=range(10))
    assert_array_equal(by_mask.worth, by_name.worth)
    given = np.bincount(y[~machine], minlength=3)
    assert_allclose(by_mask.base_rate, (given + 1 / 3) / (given.sum() + 1))
    assert learn_crowd(panel).base_rate[0] > by_mask.base_rate[0]
    loss = [
        -np.log(c.predict(panel)[np.arange(len(y)), y])[~machine].mean()
        for c in (by_mask, learn_crowd(panel))
    ]
    assert loss[0] < loss[1]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"scored": [99]}, "`scored` must name annotators"),
        ({"scored": np.zeros(12, dtype=bool)}, "nobody is left"),
        ({"max_levels": 0}, "`max_levels` must be at least 1; 0 came"),
    ],
)
def test_what_cannot_be_learned_is_said(known, how: dict[str, Any], words):
    with pytest.raises(ValueError, match=words):
        learn_crowd(known[0], **how)


def test_annotations_that_are_alone_teach_nothing():
    with pytest.raises(ValueError, match="some item needs two; of 3 annotations each is alone"):
        learn_crowd(make([0, 1, 2], [0, 1, 0], [0, 1, 0]))


def test_labels_that_were_not_learned_are_refused(known):
    annotations, *_, learned = known
    strange = replace(annotations, labels=np.asarray([0, 1, 7]))
    with pytest.raises(ValueError, match="first 7"):
        learned.votes(strange)


def test_progress_ends_at_its_total():
    told: list[tuple[int, int]] = []
    learn_crowd(population(1, N=30)[0], progress=lambda done, total: told.append((done, total)))
    done, total = np.asarray(told).T
    assert np.all(np.diff(done) >= 0)
    assert done[-1] == total[-1]


# How right the truth reading is on crowds with known truth: least accuracy, most log-loss.
REACHED = {"web": (0.833, 0.53), "sentiment": (0.955, 0.18), "trec": (0.704, 0.66)}


def published(name):
    """A crowd, and what is true of those items of which that is known: places and labels."""
    votes, gold = (rows_of(f"truth_inference/{name}/{part}.csv") for part in ("label", "truth"))
    columns = {key: [row[key] for row in votes] for key in ("item", "worker", "label")}
    annotations = from_table(columns, item="item", annotator="worker", label="label")
    truth = {row["item"]: row["truth"] for row in gold}
    known = [i for i, item in enumerate(annotations.items.tolist()) if item in truth]
    place = {label: k for k, label in enumerate(annotations.labels.tolist())}
    right = np.asarray([place[truth[annotations.items[i]]] for i in known])
    return annotations, known, right


@pytest.mark.slow
@pytest.mark.parametrize("name", REACHED)
def test_the_truth_of_published_crowds_is_found_and_believed_as_it_should_be(name):
    annotations, known, right = published(name)
    P = learn_crowd(annotations).truth(annotations).probability[known]
    accuracy, most = REACHED[name]
    assert np.mean(P.argmax(axis=1) == right) >= accuracy
    assert -np.log(P[np.arange(len(right)), right]).mean() <= most


@pytest.mark.slow
def test_two_votes_an_item_do_not_make_most_of_them_one_label(monkeypatch):
    annotations, known, right = published("web")
    order = np.argsort(annotations.item, kind="stable")
    first = np.searchsorted(annotations.item[order], annotations.item[order])
    pairs = annotations.rows(order[np.arange(len(order)) - first < 2])

    def accuracy(strength):
        found = shrunk_dawid_skene(pairs, prior_strength=strength).probability[known]
        return np.mean(found.argmax(axis=1) == right)

    held = accuracy(10.0)
    assert held > 0.57
    # Left alone, EM comes to say that some labels are hardly ever true, whoever says them.
    for name in ("_AS_SAID", "_AS_SAID_FOR_LABEL"):
        monkeypatch.setattr(f"slencodings.aggregate.shrunk.{name}", 0.0)
    assert accuracy(10.0) < held - 0.03
