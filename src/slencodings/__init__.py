"""Turn what annotators said, how sure they were and how far you trust them into Dirichlets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The module of each public name; a module that is public itself is its own.
_MODULES = {
    "Annotations": "annotations",
    "Opinion": "opinion",
    "Pairs": "kinds.pairs",
    "aggregate": "aggregate",
    "alpha": "opinion",
    "at_least": "kinds.ordered",
    "check": "opinion",
    "compare": "evaluation",
    "compare_pairs": "evaluation",
    "confidence": "confidence",
    "credible_interval": "opinion",
    "dense": "tables",
    "describe_annotators": "annotators",
    "describe_judges": "annotators",
    "discount": "opinion",
    "encode": "opinion",
    "evaluate": "evaluation",
    "exports": "files.exports",
    "from_alpha": "opinion",
    "from_table": "tables",
    "fuse": "fusion",
    "fuse_average": "fusion",
    "fuse_compromise": "fusion",
    "fuse_constraint": "fusion",
    "fuse_evidence": "tables",
    "fuse_table": "tables",
    "fuse_weighted": "fusion",
    "maximize_uncertainty": "opinion",
    "metrics": "metrics",
    "multi_label": "kinds.multilabel",
    "multilabel": "kinds.multilabel",
    "ordered": "kinds.ordered",
    "pairs_from_table": "tables",
    "plot": "plot",
    "preference_rows": "files.preferences",
    "smooth": "opinion",
    "triage": "triage",
    "trust": "trust",
    "unfuse": "fusion",
    "weighted_rows": "files.forms",
}

if TYPE_CHECKING:
    from slencodings import aggregate, confidence, metrics, plot, triage, trust
    from slencodings.annotations import Annotations
    from slencodings.annotators import describe_annotators, describe_judges
    from slencodings.evaluation import compare, compare_pairs, evaluate
    from slencodings.files import exports
    from slencodings.files.forms import weighted_rows
    from slencodings.files.preferences import preference_rows
    from slencodings.fusion import (
        fuse,
        fuse_average,
        fuse_compromise,
        fuse_constraint,
        fuse_weighted,
        unfuse,
    )
    from slencodings.kinds import multilabel, ordered
    from slencodings.kinds.multilabel import multi_label
    from slencodings.kinds.ordered import at_least
    from slencodings.kinds.pairs import Pairs
    from slencodings.opinion import (
        Opinion,
        alpha,
        check,
        credible_interval,
        discount,
        encode,
        from_alpha,
        maximize_uncertainty,
        smooth,
    )
    from slencodings.tables import dense, from_table, fuse_evidence, fuse_table, pairs_from_table
else:
    # A name is fetched from its module when it is first used, so that `sle --help` and
    # `slencodings.__version__` do not wait for NumPy.
    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = _MODULES[name]
        module = import_module(f"{__name__}.{home}")
        found = module if home.endswith(name) else getattr(module, name)
        return globals().setdefault(name, found)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})


__all__ = [
    "Annotations",
    "Opinion",
    "Pairs",
    "aggregate",
    "alpha",
    "at_least",
    "check",
    "compare",
    "compare_pairs",
    "confidence",
    "credible_interval",
    "dense",
    "describe_annotators",
    "describe_judges",
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
    "multi_label",
    "multilabel",
    "ordered",
    "pairs_from_table",
    "plot",
    "preference_rows",
    "smooth",
    "triage",
    "trust",
    "unfuse",
    "weighted_rows",
]
