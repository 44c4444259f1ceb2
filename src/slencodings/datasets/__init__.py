"""Crowds to try things on: one loader a file, and the paper's Algorithm 1 to make more."""

from slencodings.datasets.digits_crowd import DigitsCrowd, crowd_table, digits_crowd
from slencodings.datasets.synthetic import Crowd, annotate, lattice, synthetic

__all__ = [
    "Crowd",
    "DigitsCrowd",
    "annotate",
    "crowd_table",
    "digits_crowd",
    "lattice",
    "synthetic",
]
