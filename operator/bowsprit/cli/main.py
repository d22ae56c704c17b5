"""The entry point of the `bowsprit` command: one typer app, a function a command.

A command parses its arguments, calls the room that does the work, and prints. What a command needs is
imported when it runs, so that `bowsprit version` and shell completion stay quick and `bowsprit plan` needs
no cluster libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import bowsprit
from bowsprit.api.defaults import PREFLIGHT_SECONDS, RUNTIME_IMAGE
from bowsprit.cli.commands import Command, Group
from bowsprit.cli.options import (
    ClusterRef,
    Context,
    Files,
    InventoryFiles,
    Kubeconfig,
    LayoutsFile,
    ModelName,
    Namespace,
    OptionalFiles,
    Output,
    OutputFormat,
    ProductsFile,
    RevisionName,
    RuntimeImage,
    TimeLimit,
)
from bowsprit.cli.problems import BadInput, Place, Problem, gathered, input_errors
from bowsprit.cli.running import run

if TYPE_CHECKING:
    from bowsprit.cli.inventory import Inventory
    from bowsprit.cli.planning import Answer

app = typer.Typer(
    name="bowsprit",
    cls=Group,
    help="Plan, explain and run plugin-aware vLLM deployments. Also callable as `kubectl bowsprit`.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plan, explain and run plugin-aware vLLM deployments. Also callable as `kubectl bowsprit`."""


@app.command(cls=Command)
def plan(
    *,
    filename: Files,
    inventory: InventoryFiles = None,
    output: OutputFormat = Output.TABLE,
    layouts: LayoutsFile = None,
    products: ProductsFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show where the models would be placed, and how each is cut. Nothing is changed.

    Exit code 0: all are placed. 3: some are not. 2: the input is wrong.

    Example: bowsprit plan -f examples/twelve-gpus --inventory examples/inventories/three-a100-nodes.yaml
    """
    from bowsprit.cli.contract import exit_code, plan_data
    from bowsprit.cli.screen import show
    from bowsprit.cli.tables import plan_tables
    from bowsprit.cli.writing import json_text, yaml_text

    with input_errors():
        answer = _answer(filename, inventory, layouts, products, ClusterRef(kubeconfig, context))
    if output is Output.JSON:
        typer.echo(json_text(plan_data(answer)), nl=False)
    elif output is Output.YAML:
        typer.echo(yaml_text([plan_data(answer)]), nl=False)
    else:
        show(plan_tables(answer))
    raise typer.Exit(exit_code(answer))


@app.command(cls=Command)
def render(
    *,
    filename: Files,
    inventory: InventoryFiles = None,
    layouts: LayoutsFile = None,
    products: ProductsFile = None,
    runtime_image: RuntimeImage = RUNTIME_IMAGE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the manifests that would be applied for what can be placed, as YAML. Nothing is changed.

    Exit codes as for `bowsprit plan`; what is not placed is named on stderr.

    Example: bowsprit render -f examples/twelve-gpus --inventory examples/inventories/three-a100-nodes.yaml
    """
    from bowsprit.cli.contract import exit_code
    from bowsprit.cli.rendering import rendered
    from bowsprit.cli.screen import note
    from bowsprit.cli.writing import yaml_text

    with input_errors():
        answer = _answer(filename, inventory, layouts, products, ClusterRef(kubeconfig, context))
    typer.echo(
        yaml_text(manifest for model in answer.models for manifest in rendered(model, runtime_image)),
        nl=False,
    )
    for model in answer.models:
        if not model.placed:
            note(f"{model.key} is not placed: {model.verdict.reason}: {model.verdict.message}")
    raise typer.Exit(exit_code(answer))


@app.command(cls=Command)
def preflight(
    *,
    filename: Files,
    output: OutputFormat = Output.TABLE,
    runtime_image: RuntimeImage = RUNTIME_IMAGE,
    time_limit: TimeLimit = PREFLIGHT_SECONDS,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Prove plugins, architecture and arguments in the engine image, on the live cluster and without a GPU.

    It runs the Job that the operator would run, prints what it reports, and takes it away again; no
    ModelDeployment is changed. Secrets and claims that the files name are those of their namespaces.

    Exit code 0: nothing stands against a start. 3: something is broken. 1: no verdict. 2: the input is wrong.

    Example: bowsprit preflight -f examples/quickstart
    """
    from bowsprit.cli.manifests import read_manifests
    from bowsprit.cli.preflighting import Terms, outcome_data, outcome_parts, prove
    from bowsprit.cli.screen import note, show
    from bowsprit.cli.writing import json_text, yaml_text

    cluster = ClusterRef(kubeconfig, context)
    with input_errors():
        terms = Terms(runtime_image, time_limit)
        outcomes = prove(read_manifests(filename).deployments, terms, cluster, note)
    data = {"models": [outcome_data(each) for each in outcomes]}
    if output is Output.JSON:
        typer.echo(json_text(data), nl=False)
    elif output is Output.YAML:
        typer.echo(yaml_text([data]), nl=False)
    else:
        show(part for each in outcomes for part in outcome_parts(each))
    raise typer.Exit(max(each.exit_code for each in outcomes))


@app.command("map", cls=Command)
def map_command(
    *,
    filename: OptionalFiles = None,
    inventory: InventoryFiles = None,
    layouts: LayoutsFile = None,
    products: ProductsFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Draw the GPUs: a row a node, a cell a GPU, a colour a model. Plain text when piped.

    Without -f, what holds the GPUs now; with -f, what would after planning these models as well.

    Example: kubectl bowsprit map
    """
    from bowsprit.cli.gpumap import gpu_map, map_parts
    from bowsprit.cli.screen import show
    from bowsprit.cli.subjects import live_gpus, planned_gpus

    cluster = ClusterRef(kubeconfig, context)
    with input_errors():
        if filename:
            drawn = planned_gpus(_answer(filename, inventory, layouts, products, cluster))
        elif inventory:
            read = _inventory(inventory, products, cluster)
            drawn = gpu_map(read.fleet, read.pods, {}, {})
        else:
            from bowsprit.cli.live import read_live_cluster
            from bowsprit.cli.products import read_products

            drawn = live_gpus(read_live_cluster(read_products(products), cluster))
    show(map_parts(drawn))


@app.command(cls=Command)
def explain(  # noqa: PLR0913 - each is an option of the command
    *,
    name: ModelName,
    namespace: Namespace = "default",
    filename: OptionalFiles = None,
    inventory: InventoryFiles = None,
    layouts: LayoutsFile = None,
    products: ProductsFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Tell all about one model: conditions, layout, GiB per stage, nodes, and why; what it waits for.

    Example: kubectl bowsprit explain mixtral -n chat
    """
    from bowsprit.cli.explanation import explanation_parts
    from bowsprit.cli.screen import show
    from bowsprit.cli.subjects import live_subject, planned_subject

    cluster = ClusterRef(kubeconfig, context)
    with input_errors():
        if filename:
            answer = _answer(filename, inventory, layouts, products, cluster)
            subject = planned_subject(answer, namespace, name)
        elif inventory:
            raise BadInput(
                [Problem(Place("--inventory"), "", "give the models that are planned on it with -f")]
            )
        else:
            from bowsprit.cli.live import read_live_cluster
            from bowsprit.cli.products import read_products

            subject = live_subject(read_live_cluster(read_products(products), cluster), namespace, name)
    show(explanation_parts(subject))


@app.command(cls=Command)
def history(
    *,
    name: ModelName,
    namespace: Namespace = "default",
    output: OutputFormat = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the revisions of a model, the oldest first: what was asked for, what serves, what is to serve.

    JSON and YAML hold each in full: its spec with all defaults, and its images by digest.

    Example: kubectl bowsprit history mixtral -n chat
    """
    from bowsprit.cli.history import history_data, history_parts, read_history
    from bowsprit.cli.screen import show
    from bowsprit.cli.writing import json_text, yaml_text

    with input_errors():
        found = read_history(ClusterRef(kubeconfig, context), namespace, name)
    if output is Output.JSON:
        typer.echo(json_text(history_data(found)), nl=False)
    elif output is Output.YAML:
        typer.echo(yaml_text([history_data(found)]), nl=False)
    else:
        show(history_parts(found))


@app.command(cls=Command)
def diff(
    *,
    name: ModelName,
    first: RevisionName,
    second: RevisionName,
    namespace: Namespace = "default",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Compare two revisions of a model: spec, image digests, layouts in use, facts. `history` lists them.

    A unified diff; nothing when they are the same. Exit code 0 in both cases. 2: the input is wrong.

    Example: kubectl bowsprit diff mixtral 1 2 -n chat
    """
    from bowsprit.cli.diff import diff_parts, pair
    from bowsprit.cli.history import read_history
    from bowsprit.cli.screen import show

    with input_errors():
        found = read_history(ClusterRef(kubeconfig, context), namespace, name)
        compared = pair(found, first, second)
    show(diff_parts(found, *compared))


@app.command(cls=Command)
def crd() -> None:
    """Print the CustomResourceDefinition.

    Example: bowsprit crd | kubectl apply -f -
    """
    from bowsprit.api.crd import crd_yaml

    typer.echo(crd_yaml(), nl=False)


app.command(cls=Command)(run)


@app.command(cls=Command)
def version() -> None:
    """Print the version, as `bowsprit --version` does."""
    typer.echo(bowsprit.__version__)


def _answer(
    filename: list[str],
    inventory: list[str] | None,
    layouts: str | None,
    products: str | None,
    cluster: ClusterRef,
) -> Answer:
    """Read everything, tell of every fault at once, and plan."""
    from bowsprit.cli.layouts import NO_LAYOUTS, read_layouts
    from bowsprit.cli.manifests import read_manifests
    from bowsprit.cli.planning import answer, key_of
    from bowsprit.cli.screen import note

    manifests, read, tables = gathered(
        lambda: read_manifests(filename),
        lambda: _inventory(inventory, products, cluster),
        lambda: read_layouts(layouts) if layouts else NO_LAYOUTS,
    )
    for name in tables.unused([key_of(each) for each in manifests.deployments]):
        note(f"{layouts}: {name} is the name of no model in the files")
    planned = answer(manifests, read, tables)
    for remark in planned.notes:
        note(remark)
    return planned


def _inventory(paths: list[str] | None, products: str | None, cluster: ClusterRef) -> Inventory:
    from bowsprit.cli.inventory import read_inventory_files
    from bowsprit.cli.products import read_products
    from bowsprit.cli.screen import note

    if not paths:
        from bowsprit.cli.live import read_live_cluster

        return read_live_cluster(read_products(products), cluster).inventory
    inventory = read_inventory_files(paths, read_products(products))
    for remark in inventory.notes:
        note(remark)
    return inventory


if __name__ == "__main__":
    app()
