from __future__ import annotations

import pytest

from bowsprit.render.engine_args import has_flag, integer_of, switch_of

SEQUENCES = "--max-num-seqs"

INTEGERS: dict[str, tuple[list[str], int | None]] = {
    "not given": ([], None),
    "a separate value": (["--max-num-seqs", "8"], 8),
    "an equals sign": (["--max-num-seqs=8"], 8),
    "underscores": (["--max_num_seqs=8"], 8),
    "a beginning of the flag": (["--max-num-s", "8"], 8),
    "twice, and the last one wins": (["--max-num-seqs=8", "--max-num-seqs", "9"], 9),
    "twice in two spellings": (["--max-num-seqs", "9", "--max_num_seq=8"], 8),
    "thousands": (["--max-num-seqs=2k"], 2000),
    "binary thousands": (["--max-num-seqs=2K"], 2048),
    "one and a half thousand": (["--max-num-seqs=1.5k"], 1500),
    "no value": (["--max-num-seqs"], None),
    "another flag in place of the value": (["--max-num-seqs", "--enforce-eager"], None),
    "text": (["--max-num-seqs", "many"], None),
    "only a suffix": (["--max-num-seqs=k"], None),
    "nothing after the equals sign": (["--max-num-seqs="], None),
    "a longer flag": (["--max-num-seqs-per-rank=8"], None),
    "another flag": (["--max-num-batched-tokens=8"], None),
    "infinity": (["--max-num-seqs=infk"], None),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_a_number_given_as(case: str) -> None:
    args, number = INTEGERS[case]
    assert integer_of(args, SEQUENCES) == number


SWITCHES: dict[str, tuple[list[str], bool | None]] = {
    "not given": ([], None),
    "on": (["--enforce-eager"], True),
    "off": (["--no-enforce-eager"], False),
    "a beginning of the flag": (["--enforce"], True),
    "underscores": (["--enforce_eager"], True),
    "on, then off": (["--enforce-eager", "--no-enforce-eager"], False),
    "off, then on": (["--no_enforce_eager", "--enforce-eager"], True),
    "another flag": (["--enable-prefix-caching"], None),
    "the value of another flag": (["--chat-template", "enforce-eager"], None),
}


@pytest.mark.parametrize("case", SWITCHES)
def test_a_switch_given_as(case: str) -> None:
    args, state = SWITCHES[case]
    assert switch_of(args, "--enforce-eager") is state


def test_a_dotted_flag_is_the_flag_that_it_sets_a_part_of() -> None:
    assert has_flag(["--compilation-config.mode=3"], "--compilation-config")
    assert not has_flag(["--compilation-config.mode=3"], "--config")
