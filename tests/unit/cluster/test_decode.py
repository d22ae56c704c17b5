"""Documents of any depth are read, and one that is too deep takes nothing away from the others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.cluster.decode import MAX_DEPTH, decode


def nested(levels: int, opening: str, closing: str) -> str:
    return opening * levels + "1" + closing * levels


SHAPES = {"objects": ('{"a":', "}"), "lists": ("[", "]"), "both": ('[{"a]}":', "}]")}


@pytest.mark.parametrize("levels", [10, MAX_DEPTH, 900, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_object_that_is_nested_too_deep_is_cut_off_and_the_others_are_whole(
    levels: int, shape: tuple[str, str]
) -> None:
    others = {"name": 'a "quoted" {[', "values": [1, {"b": None}]}
    text = f'{{"items": [{json.dumps(others)}, {nested(levels, *shape)}, {json.dumps(others)}], "kind": "L"}}'
    answer = decode(text.encode())
    assert (answer["items"][0], answer["items"][2], answer["kind"]) == (others, others, "L")
    depth, value = 0, answer["items"][1]
    while isinstance(value, dict | list):
        depth, value = depth + 1, next(iter(value.values())) if isinstance(value, dict) else value[0]
    assert value in (1, None)
    assert depth >= min(levels, MAX_DEPTH - 2)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_beside_something_too_deep_any_document_is_read_as_it_is(document: object) -> None:
    text = f"[{json.dumps(document)}, {nested(10_000, '[', ']')}]"
    assert decode(text.encode())[0] == document


def test_what_is_no_json_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode(b"<html>")
