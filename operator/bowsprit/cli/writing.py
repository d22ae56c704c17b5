"""Answers as JSON and YAML: the same data, keys in the order of the contract, no aliases, texts as blocks and
as texts to kubectl too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import yaml

from bowsprit.cli.scalars import QUOTED


class _Dumper(yaml.CSafeDumper):
    yaml_implicit_resolvers = QUOTED

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(documents: Iterable[Any]) -> str:
    """One document after the other, parted by `---`."""
    dumped = (
        yaml.dump(each, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110) for each in documents
    )
    return "---\n".join(dumped)
