"""Reading the user's `vllm serve` arguments the way vLLM's own parser does.

argparse accepts unambiguous prefixes (`--max-num-s 8`), `_` for `-`, `=` or a separate value, and takes the
last of duplicates; dotted forms (`--hf-overrides.key`) set a part of a JSON option (vLLM
utils/argparse_utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def value_of(args: Sequence[str], flag: str) -> str | None:
    """The value that vLLM takes for `flag` (the last one given); None when it is not given."""
    values = [value for name, value in _options(args) if _means(name, flag) and value is not None]
    return values[-1] if values else None


def switch_of(args: Sequence[str], flag: str) -> bool | None:
    """Of an on/off flag: True, False (`--no-…`), or None when it is not given."""
    negative = "--no-" + flag.removeprefix("--")
    given: bool | None = None
    for name, _ in _options(args):
        if _means(name, flag):
            given = True
        elif _means(name, negative):
            given = False
    return given


def has_flag(args: Sequence[str], flag: str) -> bool:
    return any(_means(name, flag) for name, _ in _options(args))


def integer_of(args: Sequence[str], flag: str) -> int | None:
    """The value of a whole-number flag; vLLM's `8k` (thousand) and `8K` (1024) are understood. None when
    absent or bad."""
    text = value_of(args, flag)
    if text is None:
        return None
    factor = 1
    if text and text[-1] in _SCALES:
        text, factor = text[:-1], _SCALES[text[-1]]
    try:
        return int(float(text) * factor) if factor > 1 else int(text)
    except (ValueError, OverflowError):
        return None


_SCALES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def _options(args: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for index, token in enumerate(args):
        name = _name(token)
        if name is None:
            continue
        if "=" in token:
            yield name, token.split("=", 1)[1]
        else:
            following = args[index + 1] if index + 1 < len(args) else None
            yield name, following if following is not None and _name(following) is None else None


def _name(token: str) -> str | None:
    if not token.startswith("-") or token.lstrip("-")[:1].isdigit():
        return None
    name = token.split("=", 1)[0].split(".", 1)[0]
    return name.replace("_", "-") if name.startswith("--") else name


def _means(name: str, flag: str) -> bool:
    """A beginning counts whatever its length: one that is ambiguous never works, and none of the flags that
    are read here begins with the whole name of another one (a test holds that against vLLM's own list)."""
    return name == flag or (name.startswith("--") and len(name) > 2 and flag.startswith(name))
