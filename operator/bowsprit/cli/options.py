"""The arguments that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

Files = Annotated[
    list[str],
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE|DIR",
        help="ModelDeployments and their ConfigMaps, as YAML or JSON; folders are searched; - is stdin. "
        "May be repeated.",
    ),
]
OptionalFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE|DIR",
        help="ModelDeployments and their ConfigMaps to plan; without it, what runs on the live cluster.",
    ),
]
InventoryFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        help="What `kubectl get nodes,pods -A -o yaml` prints; without it, the live cluster is read.",
    ),
]
LayoutsFile = Annotated[
    str | None,
    typer.Option(
        "--layouts",
        metavar="FILE",
        help="Your own measured table in place of the memory model. JSON: "
        '{"model": {"GPU product": [{"tensor": 1, "minPipeline": 3}]}}.',
    ),
]
ProductsFile = Annotated[
    str | None,
    typer.Option(
        "--products",
        metavar="FILE",
        envvar="BOWSPRIT_PRODUCTS",
        help="What the GPUs of unlabelled nodes are. YAML: a list `products` of "
        "{nodeSelector, product, memoryMiB, linked}.",
    ),
]
RuntimeImage = Annotated[
    str,
    typer.Option(
        "--runtime-image",
        metavar="IMAGE",
        envvar="BOWSPRIT_RUNTIME_IMAGE",
        help="Bowsprit's own code in engine pods; name a mirror of it here.",
    ),
]
TimeLimit = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        min=1,
        help="How long a model may take to be judged; then the step is named that takes so long. Pulling of "
        "images does not count.",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        envvar="BOWSPRIT_KUBECONFIG",
        help="Of the live cluster; else found as kubectl does, or the pod's own account.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        envvar="BOWSPRIT_CONTEXT",
        help="Context of the kubeconfig; else its current one.",
    ),
]
ModelName = Annotated[str, typer.Argument(help="Name of the ModelDeployment.")]
RevisionName = Annotated[str, typer.Argument(help="A revision: its number, or its hash.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the model.")]


class ClusterRef(NamedTuple):
    """Which live cluster is meant: --kubeconfig and --context."""

    kubeconfig: str | None
    context: str | None


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputFormat = Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")]
