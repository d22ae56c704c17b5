"""How long a group that goes on dying waits."""

from __future__ import annotations

from bowsprit.controller.backoff import FORGIVEN_S, MAX_S, START_S, Backoff

A, B = ("team", "lws", "0"), ("team", "lws", "1")


def test_the_first_start_anew_is_at_once_and_the_next_pauses_double_up_to_a_limit() -> None:
    backoff, now, pauses = Backoff(), 0.0, []
    for number in range(8):
        count, pause = backoff.died(A, now)
        assert count == number + 1
        assert backoff.paused(now) == ({A} if pause else set())
        assert list(backoff.ends(now)) == ([now + pause] if pause else [])
        now += pause
        assert not backoff.paused(now)
        pauses.append(pause)
    assert pauses == [0, START_S, 2 * START_S, 4 * START_S, 8 * START_S, 16 * START_S, MAX_S, MAX_S]


def test_each_group_waits_for_itself() -> None:
    backoff = Backoff()
    for _ in range(2):
        backoff.died(A, 0)
    backoff.died(B, 0)
    assert backoff.paused(0) == {A}


def test_a_group_that_has_lived_long_starts_again_at_once() -> None:
    backoff = Backoff()
    for _ in range(3):
        backoff.died(A, 0)
    restarted = 2 * START_S
    assert backoff.died(A, restarted + FORGIVEN_S + 1) == (1, 0)


def test_what_is_forgiven_is_forgotten() -> None:
    backoff = Backoff()
    backoff.died(A, 0)
    backoff.died(B, FORGIVEN_S)
    backoff.forget(FORGIVEN_S + 1)
    assert set(backoff.groups) == {B}
