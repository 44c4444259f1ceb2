"""Turn what annotators said, how sure they were and how far you trust them into Dirichlets."""

from slencodings import aggregate, confidence, metrics
from slencodings.annotations import Annotations, from_table
from slencodings.fusion import (
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    unfuse,
)
from slencodings.opinion import (
    Opinion,
    alpha,
    check,
    discount,
    encode,
    from_alpha,
    maximize_uncertainty,
    smooth,
)
from slencodings.tables import dense, fuse_table

__version__ = "0.1.0"

__all__ = [
    "Annotations",
    "Opinion",
    "aggregate",
    "alpha",
    "check",
    "confidence",
    "dense",
    "discount",
    "encode",
    "from_alpha",
    "from_table",
    "fuse",
    "fuse_average",
    "fuse_compromise",
    "fuse_constraint",
    "fuse_table",
    "fuse_weighted",
    "maximize_uncertainty",
    "metrics",
    "smooth",
    "unfuse",
]
