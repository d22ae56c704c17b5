"""What a user may have meant: names that differ in case or in a few letters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def alike(name: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Of `names` those that sound like `name`, the nearest first."""
    lowered = {one.lower(): one for one in names}
    return [lowered[one] for one in difflib.get_close_matches(name.lower(), lowered, n=most)]
