"""What is made of annotators: the rule, and whether it finds out whom it should."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from crowds import make

from slencodings.annotations import Annotations
from slencodings.annotators import judge, verdict
from slencodings.annotators.verdicts import agree_above_chance, shared_items, typical_skill
from slencodings.trust import learn_crowd


@pytest.mark.parametrize(
    ("low", "high", "typical", "shared", "expected"),
    [
        (0.5, 0.9, 0.7, 50, "fine"),
        (0.5, 0.61, 0.7, 50, "fine"),  # below the typical, but not clearly so
        (0.3, 0.6, 0.7, 50, "look at"),
        (0.01, 0.2, 0.7, 50, "look at"),
        (-0.2, 0.3, 0.7, 50, "at chance"),
        (0.0, 0.6, 0.7, 50, "at chance"),
        (-0.3, 0.65, 0.7, 50, "too few to tell"),
        (-0.3, -0.01, 0.7, 50, "against the crowd"),
        (0.5, 1.0, 0.7, 4, "too few to tell"),
        (-0.9, -0.5, 0.7, 4, "too few to tell"),
        (0.05, 0.25, 0.3, 50, "look at"),  # low whatever is typical
        (-0.2, 0.25, 0.0, 50, "at chance"),  # nobody is typical
        (-0.2, 0.3, 0.0, 50, "too few to tell"),
    ],
)
def test_the_interval_decides(low, high, typical, shared, expected):
    assert verdict(low, high, typical=typical, shared=shared) == expected


def mixed(
    seed: int, K: int, *, N: int, per: int, people: dict[str, int], prior: Any = None
) -> tuple[Annotations, list[str]]:
    """Good people, guessers, some who always say the same, adversaries and newcomers."""
    rng = np.random.default_rng(seed)
    p = np.full(K, 1 / K) if prior is None else np.r_[prior, np.full(K - 1, (1 - prior) / (K - 1))]
    kinds = [kind for kind, n in people.items() for _ in range(n)]
    regular = np.flatnonzero([kind != "new" for kind in kinds])
    truth, skill = rng.choice(K, N, p=p), rng.uniform(0.7, 0.95, len(kinds))
    who = np.concatenate([rng.choice(regular, per, replace=False) for _ in range(N)])
    new = np.setdiff1d(np.arange(len(kinds)), regular)
    item = np.r_[np.repeat(np.arange(N), per), rng.choice(N, 3 * len(new), replace=False)]
    who = np.r_[who, np.repeat(new, 3)]
    t, kind = truth[item], np.asarray(kinds)[who]
    other = (t + rng.integers(1, K, len(t))) % K
    skilled = np.where(rng.random(len(t)) < skill[who], t, other)
    answers = {"random": rng.integers(0, K, len(t)), "same": who % K, "adverse": other}
    y = np.select([kind == k for k in answers], list(answers.values()), skilled)
    return make(item, who, y, N=N, M=len(kinds), K=K), kinds


MANY = {"good": 12, "random": 3, "same": 2, "adverse": 2, "new": 3}
FEW = {"good": 5, "random": 1, "same": 1, "adverse": 1, "new": 2}
CROWDS = {
    "usual": {"N": 400, "per": 5, "people": MANY},
    "thin": {"N": 900, "per": 3, "people": MANY},
    "small": {"N": 250, "per": 4, "people": FEW},
    "unbalanced": {"N": 700, "per": 5, "people": MANY, "prior": 0.7},
}
# Wrong on purpose is hardly less often right than guessing among many labels.
MEANT = {
    "good": {"fine"},
    "random": {"at chance"},
    "same": {"at chance"},
    "adverse": {"against the crowd"},
    "new": {"too few to tell"},
}


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 8])
def test_verdicts_find_out_whom_they_should_nine_times_in_ten(K):
    found: dict[str, Counter[str]] = {kind: Counter() for kind in MEANT}
    for how in CROWDS.values():
        for seed in range(2):
            a, kinds = mixed(seed, K, **how)
            for kind, (made, _) in zip(kinds, judge(a, learn_crowd(a)), strict=True):
                found[kind][made] += 1
    meant = MEANT | ({"adverse": {"against the crowd", "at chance"}} if K == 8 else {})
    for kind, counts in found.items():
        right = sum(counts[made] for made in meant[kind])
        assert right >= 0.9 * counts.total(), (kind, counts)
    # Nobody who guesses is called fine, and nobody who is good is said to work against the rest.
    assert not found["random"]["fine"] + found["same"]["fine"] + found["adverse"]["fine"]
    assert not found["good"]["against the crowd"]


def test_reasons_name_what_was_seen():
    a, kinds = mixed(0, 3, **CROWDS["usual"])
    crowd = learn_crowd(a)
    judged = dict(zip(kinds, judge(a, crowd), strict=True))
    assert judged["same"].reason.startswith("no better than guessing, says ")
    assert judged["same"].reason.endswith("100% of the time")
    assert judged["adverse"].reason == "right less often than by guessing"
    assert judged["new"].reason == "shares 3 items with others"
    assert judged["good"].reason == "above chance, as is usual"
    low, _ = crowd.above_chance_interval()
    assert 0.5 < typical_skill(crowd.above_chance, low, shared_items(a)) < 0.95


def test_who_is_alone_on_all_items_cannot_be_told():
    a, _ = mixed(0, 2, **CROWDS["small"])
    alone = make(
        np.r_[a.item, 250 + np.arange(30)], np.r_[a.annotator, np.full(30, 10)],
        np.r_[a.y, np.zeros(30, int)], N=280, M=11, K=2,
    )  # fmt: skip
    assert shared_items(alone)[10] == 0
    assert judge(alone, learn_crowd(alone))[10] == (
        "too few to tell",
        "shares no items with others",
    )


def test_repeats_of_one_annotator_are_nothing_shared():
    a = make([0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1])
    assert shared_items(a).tolist() == [1, 1]


def test_in_a_crowd_of_guessers_nobody_is_fine():
    found: Counter[tuple[str, str]] = Counter()
    for seed in range(8):
        y = np.random.default_rng(seed).integers(0, 3, 1200)
        a = make(np.repeat(np.arange(300), 4), np.tile(np.arange(4), 300), y)
        assert not agree_above_chance(a)
        found.update(judge(a, learn_crowd(a)))
    # Each is a part of what is read as true, so that somebody is a little right.
    why = "people here may agree by chance alone"
    assert found["at chance", why] >= 24
    assert found["at chance", why] + found["too few to tell", why] == 32


def test_who_does_not_look_seldom_agrees_above_chance_and_who_looks_nearly_always():
    rng, shares = np.random.default_rng(0), np.asarray([0.6, 0.3, 0.1])
    item, who = np.repeat(np.arange(60), 3), np.tile(np.arange(3), 60)
    found: Counter[str] = Counter()
    for _ in range(200):
        y, truth = rng.choice(3, 180, p=shares), rng.choice(3, 60, p=shares)[item]
        said = {
            "guess": y,
            "have habits": np.where(rng.random(180) < 0.9, who == 2, y),
            "look": np.where(rng.random(180) < 0.6, truth, y),
        }
        found.update(kind for kind, y in said.items() if agree_above_chance(make(item, who, y)))
    # One in forty each, where sums are normal: together, and the surest of them
    assert found["guess"] <= 10
    assert found["have habits"] <= 10
    assert found["look"] >= 190


@pytest.mark.parametrize("soft", [False, True])
def test_shares_of_labels_are_judged_as_labels_are(soft):
    a, _ = mixed(0, 3, **CROWDS["small"])
    same = make(a.item, a.annotator, a.vectors if soft else a.y, N=250, M=10, K=3)
    assert judge(same, learn_crowd(same)) == judge(a, learn_crowd(a))
