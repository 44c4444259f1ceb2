"""Which encoding fits a crowd: methods compared on votes that they have not seen."""

from slencodings.comparison.held_out import Comparison, compare

__all__ = ["Comparison", "compare"]
