"""Turn what annotators said, how sure they were and how far you trust them into Dirichlets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The module of each public name; a module that is public itself is its own. Tools that do not run
# the code are told the same below, in the form that makes an import public.
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
    from slencodings import aggregate as aggregate
    from slencodings import confidence as confidence
    from slencodings import metrics as metrics
    from slencodings import plot as plot
    from slencodings import triage as triage
    from slencodings import trust as trust
    from slencodings.annotations import Annotations as Annotations
    from slencodings.annotators import describe_annotators as describe_annotators
    from slencodings.annotators import describe_judges as describe_judges
    from slencodings.evaluation import compare as compare
    from slencodings.evaluation import compare_pairs as compare_pairs
    from slencodings.evaluation import evaluate as evaluate
    from slencodings.files import exports as exports
    from slencodings.files.forms import weighted_rows as weighted_rows
    from slencodings.files.preferences import preference_rows as preference_rows
    from slencodings.fusion import fuse as fuse
    from slencodings.fusion import fuse_average as fuse_average
    from slencodings.fusion import fuse_compromise as fuse_compromise
    from slencodings.fusion import fuse_constraint as fuse_constraint
    from slencodings.fusion import fuse_weighted as fuse_weighted
    from slencodings.fusion import unfuse as unfuse
    from slencodings.kinds import multilabel as multilabel
    from slencodings.kinds import ordered as ordered
    from slencodings.kinds.multilabel import multi_label as multi_label
    from slencodings.kinds.ordered import at_least as at_least
    from slencodings.kinds.pairs import Pairs as Pairs
    from slencodings.opinion import Opinion as Opinion
    from slencodings.opinion import alpha as alpha
    from slencodings.opinion import check as check
    from slencodings.opinion import credible_interval as credible_interval
    from slencodings.opinion import discount as discount
    from slencodings.opinion import encode as encode
    from slencodings.opinion import from_alpha as from_alpha
    from slencodings.opinion import maximize_uncertainty as maximize_uncertainty
    from slencodings.opinion import smooth as smooth
    from slencodings.tables import dense as dense
    from slencodings.tables import from_table as from_table
    from slencodings.tables import fuse_evidence as fuse_evidence
    from slencodings.tables import fuse_table as fuse_table
    from slencodings.tables import pairs_from_table as pairs_from_table

    __all__: list[str]
else:
    __all__ = [*_MODULES]

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
