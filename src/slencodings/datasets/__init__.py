"""Crowds to try things on: one loader a file, and the paper's Algorithm 1 to make more."""

from slencodings.datasets.alttest import alttest
from slencodings.datasets.cifar10_images import cifar10_images
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.digits_crowd import DigitsCrowd, crowd_table, digits_crowd
from slencodings.datasets.mre import mre
from slencodings.datasets.published import Published, published
from slencodings.datasets.rte import rte
from slencodings.datasets.simulated_panel import SimulatedPanel, simulated_panel
from slencodings.datasets.synthetic import SyntheticCrowd, annotate, lattice, synthetic
from slencodings.datasets.truth_inference import KnownTruth, truth_inference
from slencodings.datasets.uds_factuality import uds_factuality

__all__ = [
    "DigitsCrowd",
    "KnownTruth",
    "Published",
    "SimulatedPanel",
    "SyntheticCrowd",
    "alttest",
    "annotate",
    "cifar10_images",
    "cifar10s",
    "convabuse",
    "crowd_table",
    "digits_crowd",
    "lattice",
    "mre",
    "published",
    "rte",
    "simulated_panel",
    "synthetic",
    "truth_inference",
    "uds_factuality",
]
