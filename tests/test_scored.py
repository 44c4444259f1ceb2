"""Whose votes are predicted, from what is typed to what is learned and compared."""

from dataclasses import replace

import numpy as np
import pytest
from crowds import make
from flat import read_crowd
from strategies import present

from slencodings.evaluation import compare
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.predicted import HeldOut, halves, predict, score
from slencodings.trust import learn_crowd, weigh

PANEL = """\
item,who,kind,label
1,ann,human,x
1,bob,human,y
1,gpt-4,model,x
1,gpt-5,model,x
2,ann,human,y
2,bob,human,y
2,gpt-4,model,x
2,"cy, d",,y
"""


@pytest.fixture
def here(here):
    (here / "panel.csv").write_text(PANEL)
    return here


def scored(text: str, **how) -> list:
    columns = {"item": "item", "annotator": "who", "label": "label"} | how
    return read_crowd("panel.csv", columns=columns, scored=text).scored or []


def test_those_scored_are_named_by_name_by_pattern_or_by_a_column(here):
    assert scored("ann,bob") == ["ann", "bob"]
    assert scored("gpt*, ann") == ["ann", "gpt-4", "gpt-5"]
    assert scored('"cy, d"') == ["cy, d"]
    assert scored("kind=human") == ["ann", "bob"]
    assert scored("kind=model,human") == ["ann", "bob", "gpt-4", "gpt-5"]
    assert read_crowd("panel.csv", columns={"annotator": "who"}).scored is None


def test_a_name_with_a_bracket_stands_for_itself(here):
    (here / "panel.csv").write_text(PANEL.replace("gpt-4", "bot[4]").replace("gpt-5", "a=b"))
    assert scored("bot[4]") == ["bot[4]"]
    assert scored("a=b") == ["a=b"]


def test_numbers_can_be_annotators(here):
    (here / "panel.csv").write_text(PANEL.replace("ann", "7").replace("bob", "8"))
    assert scored("7") == ["7"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("an", "`scored` must name annotators, .* 'an' is none of .* Did you mean scored='ann'"),
        ("nobody", r"'nobody' is none of the 5 annotators \('ann', 'bob'"),
        ("sort=human", "'sort=human' is none of .* The columns are 'item', 'who'"),
        ("kind=robot", "needs a value of the column 'kind'; 'robot' came. It has 'human', 'model'"),
        (
            "label=x",
            "the same in all rows of an annotator; 'label' does not for 1 annotator.*'ann'",
        ),
    ],
)
def test_what_names_nobody_is_refused_in_words(here, text, words):
    with pytest.raises(ValueError, match=words):
        scored(text)


def test_without_annotators_nobody_can_be_scored(here):
    (here / "panel.csv").write_text("item,label\n1,x\n1,y\n")
    with pytest.raises(ValueError, match=r"no column says who annotated\. Name it: annotator="):
        scored("ann", annotator=None)


def test_the_column_that_says_it_is_not_called_unused_and_reliability_is_not_looked_for(here):
    (here / "panel.csv").write_text(
        "item,who,kind,label,skill\n1,ann,human,x,.9\n1,bob,model,y,.2\n"
    )
    told: list[str] = []
    crowd = read_crowd(
        "panel.csv",
        columns={"annotator": "who"},
        scored="kind=human",
        say=lambda what, text: told.append(text),
    )
    assert crowd.annotations.reliability is None
    assert not any("not used" in text and "kind" in text for text in told)
    assert any(
        "column 'skill' is not used: what annotators are worth is learned; reliability='skill'"
        in text
        for text in told
    )
    assert "votes by 1 of 2 annotators" in told
    named = read_crowd("panel.csv", columns={"annotator": "who", "reliability": "skill"})
    np.testing.assert_allclose(present(named.annotations.reliability), [0.9, 0.2])


def panel(rng: np.random.Generator):
    """Four people who guess at a truth, and two models that say the first label half the time."""
    N, truth = 60, rng.integers(0, 2, 60)
    item, who = np.repeat(np.arange(N), 6), np.tile(np.arange(6), N)
    right = rng.random(6 * N) < 0.8
    y = np.where(right, truth[item], 1 - truth[item])
    y = np.where((who >= 4) & (rng.random(6 * N) < 0.5), 0, y)
    return make(item, who, y, K=2)


def test_a_set_of_names_a_list_and_a_mask_are_the_same():
    a = panel(np.random.default_rng(0))
    people = a.annotators[:4].tolist()
    crowds = [learn_crowd(a, scored=s) for s in (set(people), people, np.arange(6) < 4)]
    for crowd in crowds[1:]:
        np.testing.assert_array_equal(crowd.worth, crowds[0].worth)
    weighed = weigh(a, scored=people)
    np.testing.assert_array_equal(weighed.crowd.worth, crowds[0].worth)
    assert not np.array_equal(weigh(a).crowd.worth, crowds[0].worth)


def test_only_votes_of_those_scored_are_counted_and_each_as_before():
    a, given = panel(np.random.default_rng(0)), None
    given = halves(a, np.random.default_rng(0))
    mask = np.arange(6) < 4
    everybody, people = HeldOut(a, given), HeldOut(a, given, mask)
    assert people.counts[0].sum() == 4 * 60
    fit = methods_for(a)["SLE, full trust"](Learner(a))
    said = predict(fit, a, everybody)
    each = -np.log(said.votes[np.arange(len(a.y)), a.y])
    summed = np.bincount(a.item, each * mask[a.annotator])
    np.testing.assert_allclose(score(predict(fit, a, people), people)[0], summed)
    assert score(said, everybody)[0].sum() > summed.sum()


def test_habits_are_those_of_the_people_who_are_scored():
    a = panel(np.random.default_rng(0))
    # Who is not scored says the opposite of what they mean; that must not become a habit.
    contrary = replace(a, y=np.where(a.annotator >= 4, 1 - a.y, a.y))
    mask = np.arange(6) < 4
    given = np.zeros(len(a.y), dtype=bool)
    only = a.rows(mask[a.annotator])
    losses = []
    for held in (HeldOut(contrary, given, mask), HeldOut(contrary, given)):
        fit = methods_for(a)["soft votes"](Learner(only))
        told = predict(fit, contrary, held)
        losses.append(
            np.mean(-np.log(told.votes[np.arange(len(a.y)), contrary.y][mask[a.annotator]]))
        )
    assert losses[0] < losses[1]


def test_compare_says_whose_votes_it_predicts_and_predicts_them_better_for_it():
    a = panel(np.random.default_rng(0))
    people = a.annotators[:4].tolist()
    names = ["learned crowd", "soft votes"]
    found = compare(a, scored=people, methods=names, bootstrap=20)
    assert found.about.scored == 240
    assert found.about.scored_annotators == 4
    assert "240 held-out votes by 4 annotators, lower is better" in str(found)
    assert compare(a, methods=names, bootstrap=20).about.scored_annotators is None
    with pytest.raises(ValueError, match="`scored` must leave somebody who annotated"):
        compare(a, scored=np.zeros(6, dtype=bool), methods=names)
