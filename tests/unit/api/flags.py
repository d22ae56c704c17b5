"""Which flags of vLLM are Bowsprit's, as the API server finds out: by the patterns in the CRD's rules."""

from __future__ import annotations

import re
from functools import cache

from bowsprit.api.reserved import OWNED, Owned, pattern


def owner_of(argument: str) -> Owned | None:
    """The entry that an item of engine.args falls under; None when it is the user's to give."""
    return next((entry for entry in OWNED if _compiled(entry.flags).search(argument)), None)


@cache
def _compiled(flags: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(pattern(flags))
