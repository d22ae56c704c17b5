"""Words of YAML mean the same here and to kubectl (the table was taken down from kubectl 1.36 itself)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.cli.documents import read_files
from bowsprit.cli.writing import yaml_text

KUBECTL: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "on", "True"), True),
    **dict.fromkeys(("n", "N", "off", "FALSE"), False),
    "1e3": 1000,
    "1e-5": 1e-05,
    "1E5": 100000,
    "1.e3": 1000,
    "1.5e+3": 1500,
    ".5": 0.5,
    "-.5": -0.5,
    "5.": 5,
    "+1": 1,
    "-0": 0,
    "12e03": 12000,
    "0e0": 0,
    "1_000": 1000,
    "0.5": 0.5,
    "010": 8,
    "0777": 511,
    "0o10": 8,
    "0O7": 7,
    "0x1F": 31,
    "0X1F": 31,
    "0b11": 3,
    "0B1": 1,
    "-0x1F": -31,
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "=": "=",
    "2026-11-30": "2026-11-30",
    "1,000": "1,000",
    "tRue": "tRue",
    "0x": "0x",
    "_1": "_1",
    "1.2.3": "1.2.3",
    "NaN": "NaN",
    "inf": "inf",
    "<": "<",
    "~": None,
    "Null": None,
    "9223372036854775808": 2**63,
}


def read(text: str, tmp_path: Path) -> Any:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    found = read_files([str(file)])
    assert found.problems == ()
    return found.documents[0].body["a"]


@pytest.mark.parametrize("word", KUBECTL)
def test_a_word_without_quotes_means_what_it_means_to_kubectl(word: str, tmp_path: Path) -> None:
    value = read(f"a: {word}\n", tmp_path)
    assert (value, isinstance(value, bool)) == (KUBECTL[word], isinstance(KUBECTL[word], bool))


@pytest.mark.parametrize("word", KUBECTL)
def test_a_text_stays_a_text_on_its_way_to_kubectl(word: str, tmp_path: Path) -> None:
    written = yaml_text([{"a": word}])
    assert read(written, tmp_path) == word
    if KUBECTL[word] != word:
        assert written == f"a: '{word}'\n"


@given(st.text("0123456789+-._:eExXobyn=~", max_size=6))
def test_every_text_is_read_back_by_either_reader(text: str) -> None:
    written = yaml_text([{"a": text}])
    assert yaml.safe_load(written) == {"a": text}
