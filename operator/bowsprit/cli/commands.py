"""What all commands have in common.

Their help shows a flag as one: typer prints `<bool>` behind it, as if it took a value. And an option that
would be ignored beside another is refused.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from bowsprit.cli.problems import BadInput, Place, Problem, input_errors


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        with input_errors():
            _refuse_two_clusters(ctx)
        return super().invoke(ctx)


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))


def _flags_without_type(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _refuse_two_clusters(ctx: Any) -> None:
    """What the environment says of the live cluster is no contradiction: it is there for all commands."""
    if not ctx.params.get("inventory"):
        return
    ignored = [f"--{name}" for name in ("kubeconfig", "context") if _is_typed(ctx, name)]
    if ignored:
        message = (
            f"is the cluster then, and {' and '.join(ignored)} would be ignored: give the one or the other"
        )
        raise BadInput([Problem(Place("--inventory"), "", message)])


def _is_typed(ctx: Any, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
