"""Tables of annotations in any engine: to tables of opinions, and to arrays."""

from slencodings.tables.arrays import dense, from_table
from slencodings.tables.fuse import fuse_evidence, fuse_table
from slencodings.tables.pairs import pairs_from_table

__all__ = ["dense", "from_table", "fuse_evidence", "fuse_table", "pairs_from_table"]
