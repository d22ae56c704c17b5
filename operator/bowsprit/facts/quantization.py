"""Bytes of a matrix under the checkpoint's quantization, and which modules are spared.

Read from `quantization_config` (vLLM model_executor/layers/quantization). A method that is not known here
is counted in the activation dtype: too many bytes rather than too few.
"""

from __future__ import annotations

from dataclasses import dataclass

from bowsprit.facts.fields import Count, Fields, invalid
from bowsprit.facts.patterns import Patterns, TooManyPatterns

_BITS = Count(("num_bits", "bits", "w_bit"), maximum=16, minimum=1)
_GROUP_SIZE = Count(("group_size", "q_group_size"), maximum=65536, minimum=-1)
_MAX_GROUPS = 16
_METHODS = {
    "autoawq": "awq",
    "auto_awq": "awq",
    "awq_marlin": "awq",
    "gptq_marlin": "gptq",
    "auto-round": "gptq",
}


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a matrix is stored: `bits` per value, and `extra_bits` for each group of inputs of each output."""

    bits: int
    group: int = 0
    """Inputs that share a scale; 0 when a whole output channel does."""
    extra_bits: int = 32
    """Scale and zero point of a group, or of a channel."""
    block: tuple[int, int] | None = None
    """(outputs, inputs) that share a 4-byte scale."""
    pad_inputs: int = 1
    pad_outputs: int = 1
    """Kernels that want sizes in these multiples hold the padding in GPU memory."""

    @property
    def unit(self) -> int:
        """The least slice of inputs that a rank may hold."""
        if self.pad_inputs > 1:
            return 1
        return self.block[1] if self.block else max(1, self.group)

    def matrix_bytes(self, inputs: int, outputs: int) -> int:
        inputs, outputs = _round_up(inputs, self.pad_inputs), _round_up(outputs, self.pad_outputs)
        values = -(-inputs * outputs * self.bits // 8)
        if self.block:
            return values + 4 * -(-outputs // self.block[0]) * -(-inputs // self.block[1])
        groups = -(-inputs // self.group) if self.group else 1
        return values + -(-outputs * groups * self.extra_bits // 8)


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


@dataclass(frozen=True, slots=True)
class Rule:
    """A scheme and the modules it is for; `targets` None means every linear module."""

    scheme: Scheme
    targets: Patterns | None = None


@dataclass(frozen=True, slots=True)
class Precision:
    """The activation dtype, and the quantization rules in the order in which they are tried."""

    dtype: str
    dtype_bytes: int
    kv_dtype_bytes: int
    quantization: str | None = None
    rules: tuple[Rule, ...] = ()
    spared: Patterns | None = None
    head_scheme: Scheme | None = None

    def scheme(self, name: str) -> Scheme | None:
        """The scheme of module `name`; None when it stays in the activation dtype."""
        if not self.rules or (self.spared and self.spared.matches(name)):
            return None
        return next((r.scheme for r in self.rules if r.targets is None or r.targets.matches(name)), None)

    def matrix_bytes(self, scheme: Scheme | None, inputs: int, outputs: int) -> int:
        return scheme.matrix_bytes(inputs, outputs) if scheme else inputs * outputs * self.dtype_bytes

    def unit(self, name: str) -> int:
        """The least slice of the inputs of module `name` that a rank may hold."""
        scheme = self.scheme(name)
        return scheme.unit if scheme else 1


def read_precision(dtype: str, dtype_bytes: int, quantization: Fields | None) -> Precision:
    if quantization is None:
        return Precision(dtype, dtype_bytes, kv_dtype_bytes=dtype_bytes)
    inner = quantization.section("quantization") or quantization
    method = inner.text("quant_method") or quantization.text("quant_method") or inner.text("quant_algo") or ""
    rules = _rules(method, inner)
    spared = [
        *inner.texts("ignore"),
        *inner.texts("ignored_layers"),
        *inner.texts("exclude_modules"),
        *inner.texts("modules_to_not_convert"),
        *inner.texts("llm_int8_skip_modules"),
    ]
    try:
        spare = Patterns(spared)
    except TooManyPatterns as many:
        raise invalid(
            inner.path("ignore"), len(spared), f"a list with fewer patterns: it has {many}"
        ) from many
    return Precision(
        dtype,
        dtype_bytes,
        kv_dtype_bytes=_kv_bytes(inner, dtype_bytes),
        quantization=method or None,
        rules=rules,
        spared=spare,
        head_scheme=_head_scheme(inner, rules, spare),
    )


def _kv_bytes(config: Fields, dtype_bytes: int) -> int:
    """`auto` takes the checkpoint's own KV cache scheme (vLLM utils/torch_utils.py)."""
    cache = config.section("kv_cache_scheme")
    bits = cache.get(_BITS) if cache else None
    eight = bits == 8 or (config.text("kv_cache_quant_algo") or "").upper() == "FP8"
    return 1 if eight else dtype_bytes


def _head_scheme(config: Fields, rules: tuple[Rule, ...], spared: Patterns) -> Scheme | None:
    """lm_head stays in the activation dtype unless it is named: most publishers leave it alone."""
    named = next((r.scheme for r in rules if r.targets and r.targets.matches("lm_head")), None)
    if named is None and config.raw("lm_head") is True and rules:
        named = rules[0].scheme
    return None if spared.matches("lm_head") else named


def _rules(method: str, config: Fields) -> tuple[Rule, ...]:
    method = _METHODS.get(method, method)
    groups = config.section("config_groups")
    if groups is not None:
        if len(groups.values) > _MAX_GROUPS:
            raise invalid(config.path("config_groups"), len(groups.values), f"at most {_MAX_GROUPS} groups")
        return tuple(_group_rule(groups, name) for name in groups.values)
    if method == "mxfp4":
        return (Rule(MXFP4, Patterns(["experts"])),)
    scheme = _scheme(method, config)
    return () if scheme is None else (Rule(scheme),)


NVFP4 = Scheme(4, group=16, extra_bits=8)
NF4 = Scheme(4, group=64, extra_bits=32)
MXFP4 = Scheme(4, group=32, extra_bits=8, pad_inputs=256, pad_outputs=128)
"""Experts only; padded as Marlin does it (vLLM layers/fused_moe/oracle/mxfp4.py)."""


def _scheme(method: str, config: Fields) -> Scheme | None:
    """The one scheme of a checkpoint without groups; None keeps the activation dtype."""
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8_scheme(config)
    if method == "bitsandbytes":
        return Scheme(8) if config.flag("load_in_8bit") else NF4
    if method in ("modelopt", "modelopt_fp4", "NVFP4", "FP8"):
        algorithm = (config.text("quant_algo") or method).upper()
        return NVFP4 if "FP4" in algorithm else Scheme(8)
    known = method in ("awq", "gptq") or config.get(_BITS) is not None
    return _integer_scheme(config, zero_points=not _symmetric(method, config)) if known else None


def _symmetric(method: str, config: Fields) -> bool:
    return (
        not config.flag("zero_point", default=True) if method == "awq" else config.flag("sym", default=True)
    )


def _integer_scheme(config: Fields, *, zero_points: bool) -> Scheme:
    bits = config.need(_BITS)
    group = max(0, config.get(_GROUP_SIZE) or 0)
    return Scheme(bits, group=group, extra_bits=16 + (bits if zero_points else 0))


def _fp8_scheme(config: Fields) -> Scheme:
    block = config.counts("weight_block_size")
    if not block:
        return Scheme(8)
    return Scheme(8, block=_block(config, "weight_block_size", block))


def _block(config: Fields, name: str, block: tuple[int, ...]) -> tuple[int, int]:
    if len(block) != 2 or not all(1 <= side <= 65536 for side in block):
        raise invalid(config.path(name), list(block), "two whole numbers from 1 to 65536")
    return block[0], block[1]


def _group_rule(groups: Fields, name: str) -> Rule:
    group = groups.section(name)
    weights = group.section("weights") if group else None
    if group is None or weights is None:
        raise invalid(groups.path(name), groups.raw(name), "an object with `weights` and `targets`")
    targets = group.texts("targets")
    general = not targets or any(target.startswith("Linear") for target in targets)
    return Rule(_tensor_scheme(weights), None if general else _patterns(group, targets))


def _patterns(group: Fields, targets: tuple[str, ...]) -> Patterns:
    try:
        return Patterns(targets)
    except TooManyPatterns as many:
        raise invalid(
            group.path("targets"), len(targets), f"a list with fewer patterns: it has {many}"
        ) from many


def _tensor_scheme(weights: Fields) -> Scheme:
    """compressed-tensors and modelopt describe a weight alike: bits, type, group or block."""
    bits = weights.need(_BITS)
    block = weights.counts("block_structure")
    if block:
        return Scheme(bits, block=_block(weights, "block_structure", block))
    group = max(0, weights.get(_GROUP_SIZE) or 0)
    if not group:
        return Scheme(bits)
    if weights.text("type") == "float":
        return Scheme(bits, group=group, extra_bits=8)
    return Scheme(bits, group=group, extra_bits=16 + (0 if weights.flag("symmetric", default=True) else bits))
