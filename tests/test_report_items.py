"""Which items a report lists, how it names them, and how large it gets."""

from dataclasses import replace

import numpy as np
import pytest
from crowds import named_crowd
from reporting import two_methods

from slencodings.annotations import Annotations
from slencodings.report import render, summarise
from slencodings.report.names import shown
from slencodings.report.todo import MOST_EACH, MOST_ITEMS, MOST_VOTES, choose

__all__ = ["two_methods"]


def test_items_are_all_listed_while_there_is_room():
    said = named_crowd(n=50)
    u, d = np.random.default_rng(0).random((2, 50))
    chosen, drawn = choose(said, u, d, 0)
    assert drawn == 0
    np.testing.assert_array_equal(chosen, np.argsort(-u))


@pytest.mark.parametrize("per", [1, 5, 40])
def test_of_many_items_the_most_open_are_listed_and_some_at_random(per: int):
    n = MOST_ITEMS + 500
    said = named_crowd(n=n, per=1, people=1)
    said = replace(said, item=np.repeat(np.arange(n), per), y=np.zeros(n * per, dtype=np.intp))
    u, d = np.random.default_rng(0).random((2, n))
    chosen, drawn = choose(said, u, d, 0)
    cost = min(per, MOST_EACH)
    assert len(np.unique(chosen)) == len(chosen) == min(MOST_ITEMS, MOST_VOTES // cost)
    third = min(MOST_ITEMS // 3, MOST_VOTES // 3 // cost)
    assert set(np.argsort(-u)[:third]) <= set(chosen)
    assert drawn == len(chosen) - 2 * third
    # The sharpest of those that are not there for their doubt.
    assert len(set(np.argsort(-d)[: third // 2]) - set(chosen)) == 0
    assert list(u[chosen]) == sorted(u[chosen], reverse=True)
    np.testing.assert_array_equal(choose(said, u, d, 0)[0], chosen)
    assert set(choose(said, u, d, 1)[0]) != set(chosen)


@pytest.mark.slow
def test_a_page_of_many_items_stays_below_three_megabytes_however_many():
    pages = {n: page_of(n) for n in (4_000, 16_000)}
    sizes = [len(page.encode()) for page in pages.values()]
    assert max(sizes) < 3_000_000
    assert sizes[1] < 1.01 * sizes[0]  # of both, 2,000 items are listed


def page_of(n: int, per: int = 5) -> str:
    rng = np.random.default_rng(0)
    said = Annotations(
        np.repeat(np.arange(n), per),
        ((np.arange(n)[:, None] + np.arange(per)) % 1000).ravel(),
        rng.integers(0, 3, n * per),
        rng.choice([0.0, 0.25, 0.5], n * per),
        np.asarray([f"{i:08x}-4b1c-11ee-9d2a-0242ac120002" for i in range(n)], dtype=object),
        np.asarray([f"annotator-{m:030}" for m in range(1000)], dtype=object),
        np.asarray(["negative", "neutral", "positive"], dtype=object),
    )
    found = summarise(said, reliability=0.6)
    page = render(found)
    assert found["items"]["listed"].startswith(f"2,000 of {n:,} items are listed")
    assert found["items"]["listed"] in page
    assert "The 500 busiest of 1,000 annotators are listed" in page
    assert len(found["items"]["rows"]) == MOST_ITEMS
    return page


def test_names_stay_short_whole_and_apart():
    names = ["a" * 50 + str(i) for i in range(3)] + ["b\n", "b ", "b", "b (2)", None, "", "\ud800"]
    texts = shown(names, 20)
    assert len(set(texts)) == len(texts)
    assert all(len(text) <= 24 for text in texts)
    assert texts[0].startswith("aaaa")
    assert texts[0].endswith("a0")
    assert texts[3:6] == ["b", "b (2)", "b (3)"]
    "".join(texts).encode()
    assert shown([1.0, 2.5, 3, float("nan")], 20) == ["1", "2.5", "3", "(none)"]
