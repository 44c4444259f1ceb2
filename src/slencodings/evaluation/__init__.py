"""How good predictions and encodings are: one on its own, and methods side by side."""

from slencodings.evaluation.dissonance import dissonance
from slencodings.evaluation.held_out import Comparison, compare
from slencodings.evaluation.pairs import compare_pairs
from slencodings.evaluation.scores import evaluate
from slencodings.evaluation.vote_counts import coverage, dirichlet_log_loss

__all__ = [
    "Comparison",
    "compare",
    "compare_pairs",
    "coverage",
    "dirichlet_log_loss",
    "dissonance",
    "evaluate",
]
