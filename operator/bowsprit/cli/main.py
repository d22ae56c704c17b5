"""The entry point of the `bowsprit` command: one typer app that the commands join."""

import typer

import bowsprit

app = typer.Typer(
    name="bowsprit",
    help="Plan, estimate, explain and run plugin-aware vLLM deployments.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


@app.callback()
def main() -> None:
    """Plan, estimate, explain and run plugin-aware vLLM deployments."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(bowsprit.__version__)


if __name__ == "__main__":
    app()
