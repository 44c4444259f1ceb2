"""Turn what annotators said, how sure they were and how far you trust them into Dirichlets."""

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

__version__ = "0.1.0"

__all__ = [
    "Opinion",
    "alpha",
    "check",
    "discount",
    "encode",
    "from_alpha",
    "fuse",
    "fuse_average",
    "fuse_compromise",
    "fuse_constraint",
    "fuse_weighted",
    "maximize_uncertainty",
    "smooth",
    "unfuse",
]
