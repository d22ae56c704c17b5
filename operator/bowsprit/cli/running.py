"""`bowsprit run`: the operator's settings as options and BOWSPRIT_ variables."""

from __future__ import annotations

from typing import Annotated

import typer

from bowsprit.api.defaults import RUNTIME_IMAGE
from bowsprit.cli.options import Context, Kubeconfig, ProductsFile, RuntimeImage
from bowsprit.cli.problems import input_errors


def run(  # noqa: PLR0913 - each is an option of the command
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    lease_name: Annotated[
        str, typer.Option(envvar="BOWSPRIT_LEASE_NAME", help="Lease that only one replica holds.")
    ] = "bowsprit-operator",
    lease_namespace: Annotated[
        str, typer.Option(envvar="BOWSPRIT_LEASE_NAMESPACE", help="Namespace of the Lease.")
    ] = "default",
    identity: Annotated[
        str,
        typer.Option(
            envvar="BOWSPRIT_IDENTITY", help="Name in the Lease; host name and process id when empty."
        ),
    ] = "",
    listen_host: Annotated[
        str, typer.Option(envvar="BOWSPRIT_LISTEN_HOST", help="Address of /metrics, /healthz and /readyz.")
    ] = "0.0.0.0",
    listen_port: Annotated[
        int,
        typer.Option(envvar="BOWSPRIT_LISTEN_PORT", min=0, max=65535, help="Its port; 0 takes a free one."),
    ] = 8080,
    settle: Annotated[
        float,
        typer.Option(
            envvar="BOWSPRIT_SETTLE", min=0, max=60, help="Seconds in which events gather into one pass."
        ),
    ] = 0.1,
    resync: Annotated[
        float,
        typer.Option(
            envvar="BOWSPRIT_RESYNC", min=1, help="Seconds between full comparisons with the API server."
        ),
    ] = 300.0,
    bind_timeout: Annotated[
        float,
        typer.Option(
            envvar="BOWSPRIT_BIND_TIMEOUT",
            min=1,
            help="Seconds until a pinned pod that does not bind is planned again.",
        ),
    ] = 30.0,
    writers: Annotated[
        int, typer.Option(envvar="BOWSPRIT_WRITERS", min=1, max=256, help="Models written at the same time.")
    ] = 16,
    runtime_image: RuntimeImage = RUNTIME_IMAGE,
    products: ProductsFile = None,
) -> None:
    """Run the operator until SIGTERM. It acts on the cluster; one replica at a time holds the Lease.

    Example: bowsprit run --kubeconfig ~/.kube/config --lease-namespace bowsprit-system
    """
    from bowsprit.cli.products import read_products
    from bowsprit.cli.reaching import unknown_cluster
    from bowsprit.controller import main
    from bowsprit.controller.settings import Settings

    with input_errors():
        table = read_products(products)
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        lease_name=lease_name,
        lease_namespace=lease_namespace,
        identity=identity,
        listen_host=listen_host,
        listen_port=listen_port,
        settle_s=settle,
        resync_s=resync,
        bind_timeout_s=bind_timeout,
        writers=writers,
        runtime_image=runtime_image,
        products=table,
    )
    with input_errors(), unknown_cluster():
        status = main.run(settings)
    raise typer.Exit(status)
