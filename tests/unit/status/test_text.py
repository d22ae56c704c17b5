"""Messages keep their beginning and their end when they are cut."""

from __future__ import annotations

from bowsprit.status.text import count, cut, listed


def test_a_long_message_is_cut_in_the_middle() -> None:
    message = "3 GPUs short. " + "x" * 5000 + " Lower capacity.concurrency."
    short = cut(message)
    assert len(short) == 1024
    assert short.startswith("3 GPUs short. ")
    assert short.endswith(" Lower capacity.concurrency.")


def test_a_message_that_just_fits_is_left_alone() -> None:
    assert cut("x" * 1024) == "x" * 1024


def test_counts_and_lists_read_as_english() -> None:
    assert [count(number, "pod") for number in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]
    assert listed(["a", "b", "a"]) == "a, b"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c, d and 1 more"
