"""Turn what annotators said, how sure they were and how far you trust them into Dirichlets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Annotations",
    "Opinion",
    "aggregate",
    "alpha",
    "check",
    "compare",
    "confidence",
    "dense",
    "describe_annotators",
    "discount",
    "encode",
    "evaluate",
    "exports",
    "from_alpha",
    "from_table",
    "fuse",
    "fuse_average",
    "fuse_compromise",
    "fuse_constraint",
    "fuse_evidence",
    "fuse_table",
    "fuse_weighted",
    "maximize_uncertainty",
    "metrics",
    "plot",
    "smooth",
    "triage",
    "trust",
    "unfuse",
    "weighted_rows",
]

if TYPE_CHECKING:
    from slencodings import aggregate, confidence, exports, metrics, plot, triage, trust
    from slencodings.annotations import Annotations, from_table
    from slencodings.annotators import describe_annotators
    from slencodings.comparison import compare
    from slencodings.evaluation import evaluate
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
    from slencodings.tables import dense, fuse_evidence, fuse_table
    from slencodings.targets import weighted_rows
else:
    # A name is fetched from its module when it is first used, so that `sle --help` and
    # `slencodings.__version__` do not wait for NumPy.
    def __getattr__(name: str) -> Any:
        if name in ("aggregate", "confidence", "exports", "metrics", "plot", "triage", "trust"):
            return import_module(f"{__name__}.{name}")
        homes = (
            "opinion",
            "fusion",
            "annotations",
            "tables",
            "comparison",
            "annotators",
            "evaluation",
            "targets",
        )
        for home in homes if name in __all__ else ():
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
