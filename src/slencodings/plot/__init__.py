"""Pictures of opinions and crowds: each function takes an `ax` and returns the one it drew on.

Nothing here shows or saves a figure: `ax.figure.savefig("opinion.png")` does. Without `ax` a figure
of its own is made, which pyplot does not know about. Needs `pip install 'slencodings[plot]'`.
"""

from slencodings.plot.beliefs import bars, change
from slencodings.plot.curves import calibration, confidence
from slencodings.plot.forest import comparison, reliability
from slencodings.plot.triangles import simplex, triangle

__all__ = [
    "bars",
    "calibration",
    "change",
    "comparison",
    "confidence",
    "reliability",
    "simplex",
    "triangle",
]
