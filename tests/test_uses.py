"""What opinions are for: what is measured of networks, and the tables of it."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import scipy.spatial.distance
import scipy.special

torch = pytest.importorskip("torch")

from fitting import crowd_of, one_thread, rows

from experiments import guesses, network_tables, rounds, tables, uses
from experiments.rows import FOLDER, read
from slencodings import datasets, metrics
from slencodings.evaluation import coverage

__all__ = ["one_thread"]


def problem():
    X, y = rows(60)
    return X.astype(np.float32), y, crowd_of(y, per_item=3)


@pytest.mark.parametrize("method", uses.METHODS)
def test_every_method_says_how_probable_labels_are_and_some_how_unsure_they_are(
    method,
):
    X, y, crowd = problem()
    guess = uses.learn(
        method, X[:40], crowd.of_items(np.arange(40)), X[40:], 0, rounds.Plan(2, 0.01)
    )
    np.testing.assert_allclose(guess.probability.sum(axis=1), 1, atol=1e-6)
    assert (guess.doubt is not None) == (method in uses.DOUBTING)
    assert np.all(guess.spread > 0) == (method in uses.DOUBTING)
    found = guesses.scores(guess, crowd.of_items(np.arange(40, 60)), y[40:])
    strange = guesses.scores_of_strange(guess, y[40:] == 2)
    kinds = ("errors", "risk", "strange")
    ways = {f"{what} by {way}" for what in kinds for way in network_tables.WAYS}
    wanted = {metric for metric, *_ in network_tables.USES} | ways | {"doubt"}
    if guess.doubt is None:
        wanted -= ways - {f"{what} by probability" for what in kinds} | {"doubt"}
    assert found.keys() | strange.keys() == wanted


def test_scores_are_those_of_their_definitions():
    P = np.asarray([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.4, 0.35, 0.25]])
    doubt, spread = np.asarray([0.1, 0.4, 0.3]), np.asarray([0.05, 0.2, 0.15])
    crowd = crowd_of(np.asarray([0, 1, 2]), per_item=3)
    told = np.asarray([0.0, 0.1, 0.7])
    guess = guesses.Guess(P, doubt, spread, told)
    found = guesses.scores(guess, crowd, np.asarray([0, 1, 2]))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["votes"] == pytest.approx(-np.log(P[crowd.item, crowd.y]).mean())
    # Each label is right once; the third is taken for the first.
    assert found["F1 macro"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    shares = crowd.sums() / 3
    distance = list(map(scipy.spatial.distance.jensenshannon, shares, P))
    assert found["JSD"] == pytest.approx(np.mean(distance))
    assert found["errors by doubt"] == 0.5  # one error, between the two others
    assert found["errors by probability"] == found["errors by information"] == 1
    # Most of the entropy of the third is information: what is left is the least noise.
    assert found["errors by noise"] == 0
    assert found["doubt"] == pytest.approx(0.8 / 3)
    votes = crowd.sums().astype(int)
    assert found["coverage of 90 %"] == coverage(votes, P, spread, levels=(0.9,))[0]
    strange = guesses.scores_of_strange(guess, np.asarray([False, True, True]))
    assert strange.pop("strange by noise") == 0.5
    assert set(strange.values()) == {1}


def test_risk_is_the_share_of_errors_among_the_surer_whatever_their_number():
    wrong, doubt = np.asarray([True, False, False, True]), np.asarray([0.9, 0.1, 0.2, 0.5])
    assert guesses.risk(wrong, doubt) == pytest.approx((0 + 0 + 1 / 3 + 2 / 4) / 4)
    assert guesses.risk(wrong, -doubt) == pytest.approx((1 + 2 / 2 + 2 / 3 + 2 / 4) / 4)
    # Of an order by chance it is the share of errors.
    rng = np.random.default_rng(0)
    wrong = rng.random(20_000) < 0.3
    assert guesses.risk(wrong, rng.random(20_000)) == pytest.approx(0.3, abs=0.03)


def test_items_without_a_gold_label_count_for_votes_alone():
    P = np.asarray([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    guess = guesses.Guess(P, None, np.zeros(3))
    crowd = crowd_of(np.asarray([0, 0, 1]), per_item=3, K=2)
    found = guesses.scores(guess, crowd, np.asarray([0, 0, -1]))
    assert found["accuracy"] == 0.5
    assert found["risk by probability"] == 0.25
    assert found["votes"] == pytest.approx(-np.log(P[crowd.item, crowd.y]).mean())


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "votes"])
def test_texts_of_another_crowd_are_strange(gold, monkeypatch):
    X, y, crowd = problem()
    every = np.arange(len(X))
    vectors = {
        "convabuse": rounds.Problem(X, crowd, y if gold else np.full(60, -1), every, every),
        "rte": rounds.Problem(X[:5] + 9, crowd, y, every, every),
    }
    for module in (rounds, uses):
        monkeypatch.setattr(module, "sentence_features", vectors.__getitem__)
    case = uses.people("convabuse", 0)
    assert len(case.X) == 48
    assert case.strange is not None
    assert case.strange.tolist() == [False] * 12 + [True] * 5
    assert np.all(case.new[12:] > X.max())
    votes, label = case.asked.sums(), case.gold
    assert label is not None
    for row, found in zip(votes, label, strict=True):
        alone = np.sum(row == row.max()) == 1
        assert gold or found == (row.argmax() if alone else -1)
    monkeypatch.setitem(uses.PLANS, "convabuse", rounds.Plan(1, 0.01))
    found = {row["metric"] for row in uses.rows("uses", "convabuse", "SLE as stated", 0)}
    ways = {
        f"{what} by {way}" for what in ("errors", "risk", "strange") for way in network_tables.WAYS
    }
    assert found >= ways | {"votes", "coverage of 90 %"}
    assert "doubt foreseen" not in found


def test_sentences_are_read_at_the_first_word_that_mostly_is_a_predicate():
    pairs = [("The dog ran and ran .", "ran"), ("The dog ran and ran .", "and"), ("I ran", "ran")]
    # "ran" is one in two of three places, "and" in the only one.
    assert uses.usual_predicates(pairs) == {"ran", "and"}
    # Now "and" is one in one of three.
    more = [*pairs, ("You and me and him saw .", "saw")]
    assert uses.usual_predicates(more) == {"ran", "saw"}
    assert uses.first_of({"ran"}, "A rant; then Ran, ran") == 13
    assert uses.first_of({"ran"}, "Nobody did") is None


def test_strange_predicates_are_those_of_sentences_that_have_one(monkeypatch):
    X, y, crowd = problem()
    uds = rounds.Problem(X, crowd, y, np.arange(len(X)), np.arange(len(X)))
    monkeypatch.setattr(rounds, "sentence_features", {"uds": uds}.__getitem__)
    uds = SimpleNamespace(X=[("It rains", "rains")])
    monkeypatch.setattr(uses.datasets, "uds_factuality", lambda: uds)
    mre = SimpleNamespace(X=["When it rains it pours", "No verb"])
    monkeypatch.setattr(uses, "raw_texts", {"mre": mre}.__getitem__)
    asked = []

    def features(encoder, texts, *, at, cache):
        asked.extend(zip(texts, at, strict=True))
        return X[:1] + 9

    monkeypatch.setattr(uses.texts, "load_encoder", lambda: None)
    monkeypatch.setattr(uses.texts, "features", features)
    uses._predicates.cache_clear()
    case = uses.people("uds", 0)
    uses._predicates.cache_clear()
    assert asked == [("When it rains it pours", 8)]
    assert case.strange is not None
    assert case.strange.tolist() == [False] * 12 + [True]
    np.testing.assert_array_equal(case.new[12:], X[:1] + 9)


def test_images_are_learned_from_by_what_each_held_most_probable_and_digits_are_strange():
    try:
        crowd = datasets.cifar10s()
    except FileNotFoundError:
        pytest.skip("CIFAR-10S is not here")
    case = uses.people("cifar10s", 0)
    assert case.X.shape == (800, 32 * 32 * 3)
    assert case.strange is not None
    assert case.strange.tolist() == [False] * 200 + [True] * 200
    assert case.gold is not None
    right = case.asked.sums().argmax(axis=1) == case.gold
    assert np.mean(right) > 0.8  # what most people see in an image is what it shows
    found = rounds.images(0).annotations
    assert found.y.shape == found.item.shape == crowd.annotations.item.shape
    # A digit has one colour at each place, and 4 x 4 pixels for one of 8 x 8.
    drawn = case.new[200:].reshape(-1, 3, 32, 32)
    np.testing.assert_array_equal(drawn[:, :, ::4, ::4], drawn[:, :, 3::4, 3::4])


def test_networks_that_agree_have_no_doubt_and_those_that_differ_that_of_their_variance():
    one = np.asarray([[0.7, 0.3]])
    same = guesses.together(np.stack([one] * 5))
    assert same.doubt is not None
    np.testing.assert_allclose(same.doubt, 0, atol=1e-12)
    np.testing.assert_allclose(same.spread, 0, atol=1e-12)
    # Many draws from a Dirichlet have its concentration.
    drawn = np.random.default_rng(0).dirichlet([4.0, 2.0, 2.0], (1_000, 1))
    found = guesses.together(drawn)
    assert found.doubt is not None
    np.testing.assert_allclose(1 / found.spread, 8, rtol=0.1)
    entropy = metrics.cross_entropy(found.probability, found.probability)
    assert 0 < found.doubt[0] < entropy[0]


def test_information_is_what_knowing_the_probabilities_would_tell():
    P, spread = np.asarray([[0.6, 0.3, 0.1], [0.5, 0.25, 0.25]]), np.asarray([0.1, 2.0])
    told = guesses.information(P, spread)
    rng = np.random.default_rng(0)
    for p, s, found in zip(P, spread, told, strict=True):
        drawn = rng.dirichlet(p / s, 100_000)
        noise = -np.mean(np.sum(scipy.special.xlogy(drawn, drawn), axis=1))
        entropy = -np.sum(p * np.log(p))
        assert found == pytest.approx(entropy - noise, abs=0.01)
    # Nothing is left to know of a Dirichlet with endless counts.
    assert guesses.information(P, np.full(2, 1e-9)) == pytest.approx(0, abs=1e-6)


def test_a_method_of_another_name_is_refused():
    X, _, crowd = problem()
    with pytest.raises(ValueError, match=r"`method` must be one of CE, .*; 'MV' came"):
        uses.learn("MV", X, crowd, X, 0, rounds.Plan(1, 0.01))


def test_each_digit_is_left_out_once_and_every_setting_has_its_jobs(monkeypatch):
    assert uses.SEEDS * 2 == 10
    jobs = uses.jobs()
    assert len({tuple(job.values()) for job in jobs}) == len(jobs)
    asked = []

    def learn(method, X, crowd, new, seed, plan):
        asked.append((len(X), len(crowd.item) / len(X)))
        each = np.random.default_rng(0).random(len(new))
        return guesses.Guess(np.full((len(new), 10), 0.1), each, each, each)

    monkeypatch.setattr(uses, "learn", learn)
    for setting in ("all digits", "150 items", "20 annotations"):
        assert list(uses.rows("uses", setting, "Votes", 0))
    assert asked == [(1200, 5), (150, 5), (1200, 20)]
    asked.clear()
    found = list(uses.rows("uses", "two left out", "Votes", 4))
    assert {row["metric"] for row in found} == {f"strange by {way}" for way in network_tables.WAYS}
    assert 900 < asked[0][0] < 1000
    stated = {row["metric"] for row in uses.rows("uses", "150 items", "SLE as stated", 0)}
    assert "doubt foreseen" in stated
    people = {job["seed"] for job in jobs if job["setting"] in uses.CROWDS}
    assert people == set(range(uses.SEEDS_OF_PEOPLE))
    few = uses.jobs(2, ["all digits"])
    assert {(job["setting"], job["seed"]) for job in few} == {("all digits", 0), ("all digits", 1)}


def test_growth_is_a_mean_with_its_spread_over_the_seeds_that_all_have():
    rows = [
        {"setting": name, "method": method, "seed": seed, "metric": "doubt", "value": value}
        for name in (uses.USUAL[0], *uses.OTHERS)
        for method in uses.DOUBTING
        for seed, value in enumerate((0.1, 0.3, 0.9))
        if seed < 2 or name != "2 annotations"
    ]
    heads, cells = network_tables.growth_table(pl.DataFrame(rows), "doubt")
    assert heads[:2] == ["learned by (2 seeds)", "150 items"]
    assert cells[0] == ["five CE", *["0.200 ± 0.141"] * 10]


def test_the_document_shows_the_rows():
    kept = read(FOLDER / "uses.parquet")
    if kept.is_empty():
        pytest.skip("nothing is measured yet")
    text = (tables.DOCS / "training.md").read_text(encoding="utf-8")
    for name, table in network_tables.all_of_uses(kept).items():
        assert f"<!-- {name} -->\n{tables.markdown(table)}\n<!-- end of {name} -->" in text
