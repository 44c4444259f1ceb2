"""Small problems for classifiers, and what must be the same."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from slencodings.annotations import Annotations
from slencodings.torch import SLEClassifier


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Sums in one order, and no threads that wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quick(**parameters):
    return SLEClassifier(**{"max_epochs": 3, "hidden": (8,), "random_state": 0} | parameters)


def rows(n=40, K=3, seed=0):
    """Features, and labels that can be seen from them."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, X[:, :K].argmax(axis=1)


def crowd_of(y, *, per_item=3, seed=0, K=3):
    """Annotators who are right three times out of four; item i is called `item-i`."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(len(y)), per_item)
    said = np.where(rng.random(len(item)) < 0.75, y[item], rng.integers(0, K, len(item)))
    names = np.asarray([f"item-{i}" for i in range(len(y))])
    who = np.tile(np.arange(per_item), len(y))
    u = rng.uniform(0, 0.5, len(item))
    return Annotations(item, who, said, u, names, np.arange(per_item), np.arange(K))


def weights(model):
    return {name: tensor.numpy() for name, tensor in model.network_.state_dict().items()}


def assert_same_weights(one, other):
    mine, theirs = weights(one), weights(other)
    assert set(mine) == set(theirs)
    for name, tensor in mine.items():
        np.testing.assert_array_equal(tensor, theirs[name], err_msg=name)


def assert_untouched(path, before):
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
