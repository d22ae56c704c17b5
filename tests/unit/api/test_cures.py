"""The operator's words and those of the runtime are the same (images/runtime is not part of the operator)."""

from __future__ import annotations

from bowsprit.api.cures import CURES
from bowsprit.api.reasons import Reason
from bowsprit_runtime.reasons import REASONS


def test_every_reason_of_the_runtime_is_known_and_cured_in_its_own_words() -> None:
    assert {str(reason): cure for reason, cure in CURES.items()} == {
        code: explained.cure for code, explained in REASONS.items()
    }
    assert REASONS.keys() <= {reason.value for reason in Reason}
