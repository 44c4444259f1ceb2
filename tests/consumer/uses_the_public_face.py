"""How people use it, under pyright's strict rules: what it gives has the types that it promises."""

from typing import assert_type

import numpy as np

import slencodings as sle
from slencodings.aggregate import Aggregate
from slencodings.evaluation import Comparison

table = {"item": ["p", "p", "q", "q"], "worker": list("abab"), "label": ["yes", "no", "yes", "yes"]}
crowd = sle.from_table(table, item="item", annotator="worker", label="label")
assert_type(crowd, sle.Annotations)

said = sle.encode(np.eye(2), np.asarray([0.1, 0.2]))
assert_type(said, sle.Opinion)
assert_type(sle.fuse(sle.discount(said, np.asarray([0.9, 0.5]))), sle.Opinion)
assert_type(sle.smooth(said, 0.01), sle.Opinion)

found = sle.aggregate.dawid_skene(crowd)
assert_type(found, Aggregate)
assert_type(sle.aggregate.sle(crowd, reliability=found.reliability), sle.Opinion)
assert_type(sle.compare(crowd, methods=["soft votes"], folds=2, bootstrap=10), Comparison)

learned = sle.trust.learn_crowd(crowd)
assert_type(learned.votes(crowd), sle.Opinion)
assert_type(learned.truth(crowd), sle.Opinion)
