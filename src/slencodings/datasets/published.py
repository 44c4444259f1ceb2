"""The published data sets: whose they are, what may be done with them, and how much is fetched."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A data set that is not part of this package.

    Attributes
    ----------
    loader : what loads it
    licence : as its authors state it
    origin : where a download comes from
    megabytes : how much that is; nothing is fetched without download=True
    """

    loader: str
    licence: str
    origin: str
    megabytes: float


_NONE = "none stated"
_EWT = "github.com/UniversalDependencies/UD_English-EWT"
_DECOMP = "github.com/decompositional-semantics-initiative/decomp"
_MRE = "github.com/CrowdTruth/Medical-Relation-Extraction"
_RTE = "github.com/edwinrobots/bayesian_combination_tutorial2"
_TRUTH = "github.com/yuan-li/truth-inference-at-scale"
_THEIRS = "MIT of the repository; none stated for the crowd"


def published() -> list[Published]:
    """All of them, with licence and size, before anything is fetched.

    Examples
    --------
    >>> for one in published()[:2]:
    ...     print(one.loader, one.licence, one.megabytes)
    rte() MIT of the repository; none stated for the crowd 0.7
    uds_factuality() CC BY-SA 4.0 20.0
    """
    known = {"web": 0.2, "trec": 1.0, "sentiment": 0.2, "adult": 1.0, "fact_eval": 2.3}
    panels = {"10k_prompts": 0.3, "cebab_stars": 0.2, "lesion": 0.2, "mtbench": 0.1, "wax": 0.3}
    alttest = "github.com/nitaytech/AltTest"
    return [
        Published("rte()", _THEIRS, _RTE, 0.7),
        Published("uds_factuality()", "CC BY-SA 4.0", f"{_EWT} and {_DECOMP}", 20.0),
        Published("convabuse()", "CC BY 4.0", "github.com/amandacurry/convabuse", 1.5),
        Published("cifar10s()", _NONE, "github.com/cambridge-mlg/cifar-10s", 3.8),
        Published("cifar10_images()", _NONE, "www.cs.toronto.edu", 170.1),
        Published("mre()", _NONE, _MRE, 24.3),
        *(Published(f"truth_inference({k!r})", _THEIRS, _TRUTH, n) for k, n in known.items()),
        *(Published(f"alttest({k!r})", _NONE, alttest, n) for k, n in panels.items()),
    ]
