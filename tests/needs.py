"""What must be there: tests skipped for want of it fail, with `SLENCODINGS_NEEDS="Java|axe"`."""

import os
import re


def is_needed(reason: str) -> bool:
    """Whether this, for which a test was skipped, had to be there."""
    asked = os.environ.get("SLENCODINGS_NEEDS")
    return bool(asked and re.search(asked, reason))
