"""The LeaderWorkerSet controller, run beside the cluster instead of in it.

Its webhooks are registered by URL with our authority, where an installation in the cluster would name a
Service.
"""

from __future__ import annotations

import base64
import http
import shutil
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster.health import status
from e2e.cluster.processes import Program
from e2e.cluster.programs import LWS
from e2e.cluster.site import ADMINISTRATORS, Site

# The manager registers its handlers one after the other, this one last.
LAST_WEBHOOK = "/validate--v1-pod"
# As in the upstream installation: without it every pod of the cluster would wait for this webhook.
ONLY_LWS_PODS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}


def lws_manager(site: Site) -> Program:
    """The LeaderWorkerSet manager. Its CRD must exist before it starts."""
    flags = [
        f"--config={_write_configuration(site)}",
        f"--kubeconfig={site.user_kubeconfig('lws-manager', ADMINISTRATORS)}",
    ]
    port = site.port("lws-webhook")
    return Program(
        "lws-manager",
        site.command("lws-manager", flags),
        site.log("lws-manager"),
        lambda: _serves_webhooks(port),
    )


def crd(site: Site) -> Path:
    """The definition of LeaderWorkerSet."""
    return site.programs.manifest(LWS, LWS.manifests[0])


def webhooks(site: Site) -> list[dict[str, Any]]:
    """The module's webhook registrations, pointed at the manager on this machine."""
    registrations = list(yaml.safe_load_all(site.programs.manifest(LWS, LWS.manifests[1]).read_text()))
    authority = base64.b64encode(site.authority.files.certificate.read_bytes()).decode()
    for registration in registrations:
        registration["metadata"]["name"] = f"lws-{registration['metadata']['name']}"
        for webhook in registration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            url = f"https://127.0.0.1:{site.port('lws-webhook')}{path}"
            webhook["clientConfig"] = {"url": url, "caBundle": authority}
            if any("pods" in rule["resources"] for rule in webhook["rules"]):
                webhook["objectSelector"] = ONLY_LWS_PODS
    return registrations


def _write_configuration(site: Site) -> Path:
    directory = site.directory / "lws"
    directory.mkdir(exist_ok=True)
    identity = site.authority.issue("lws-webhook", hosts=["127.0.0.1"])
    shutil.copy(identity.certificate, directory / "tls.crt")
    shutil.copy(identity.key, directory / "tls.key")
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{site.port('lws-health')}"},
        "webhook": {
            "host": "127.0.0.1",
            "port": site.port("lws-webhook"),
            "certDir": str(directory),
        },
    }
    path = directory / "configuration.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


def _serves_webhooks(port: int) -> bool:
    """Whether the last webhook is registered; the manager's own readiness says only that its process runs."""
    return status(f"https://127.0.0.1:{port}{LAST_WEBHOOK}") not in (None, http.HTTPStatus.NOT_FOUND)
