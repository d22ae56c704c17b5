"""Serving a part of the Kubernetes API from this machine, as a metrics adapter does with
custom.metrics.k8s.io.

An APIService names a Service, never an address. The Service made here is of type ExternalName with the name
`localhost`: the API server then connects to localhost at the APIService's port. That needs no endpoints, no
cluster address and so no kube-proxy, and an HTTPS server of a test may listen on 127.0.0.1. (With
`--enable-aggregator-routing` it would be the other way round: only Services with endpoints, which may not
be loopback addresses. So that flag stays off.)

The API server checks the certificate against the Service's name: serve with `serving_context(...)`. It
first asks for `/apis/<group>/<version>`, which must answer 200 with an APIResourceList; until then the
APIService is not Available. Autoscalers pass over a group whose list is empty.
"""

from __future__ import annotations

import base64
import ssl
from typing import Any

from e2e.cluster.site import Site

NAMESPACE = "kube-system"


def serving_context(site: Site, group: str) -> ssl.SSLContext:
    """What an HTTPS server needs to be believed as the server of an API group."""
    name = _service(group)
    identity = site.authority.issue(name, hosts=[f"{name}.{NAMESPACE}.svc", "localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    return context


def registration(site: Site, group: str, version: str, port: int) -> list[dict[str, Any]]:
    """The Service and APIService that make the API server pass a group on to a port of this machine."""
    authority = base64.b64encode(site.authority.files.certificate.read_bytes()).decode()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _service(group), "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    api_service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": authority,
            "service": {"name": _service(group), "namespace": NAMESPACE, "port": port},
        },
    }
    return [service, api_service]


def _service(group: str) -> str:
    return group.replace(".", "-")
