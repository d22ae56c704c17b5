"""Plain words of YAML as Kubernetes reads them: `y` is true, `1e3` a number, `1:30` a text.

kubectl reads YAML with Go's library, PyYAML follows the older rules. A file must mean the same to
`bowsprit plan -f` as to `kubectl apply -f`, and what `bowsprit render` prints must come through a pipe to
kubectl as it was.
"""

from __future__ import annotations

import re

import yaml

Resolvers = dict[str, list[tuple[str, re.Pattern[str]]]]
"""By first character: (tag, pattern of the whole word), as PyYAML keeps them."""

_TAG = "tag:yaml.org,2002:"
_REPLACED = {f"{_TAG}{name}" for name in ("bool", "int", "float", "timestamp", "value")}
_WORDS = (
    (
        "bool",
        "yYnNtTfFoO",
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
    ),
    ("int", "-+0123456789", r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|0|[1-9][0-9_]*)"),
    (
        "float",
        "-+.0123456789",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
)


def _kubernetes() -> Resolvers:
    kept = {
        first: [(tag, pattern) for tag, pattern in words if tag not in _REPLACED]
        for first, words in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for name, firsts, pattern in _WORDS:
        for first in firsts:
            kept.setdefault(first, []).append((f"{_TAG}{name}", re.compile(f"({pattern})\\Z")))
    return kept


READ = _kubernetes()
"""What a word without quotes is, to a loader."""

QUOTED = {
    first: READ.get(first, []) + yaml.SafeDumper.yaml_implicit_resolvers.get(first, [])
    for first in READ.keys() | yaml.SafeDumper.yaml_implicit_resolvers.keys()
}
"""To a dumper: texts that Go's or PyYAML's readers would take for something else are put into quotes."""


def whole_number(text: str) -> int:
    """The value of a word that is an `int`: 010 and 0o10 are 8."""
    digits = text.replace("_", "")
    return int(digits, 8) if re.fullmatch("[-+]?0[0-7]+", digits) else int(digits, 0)
