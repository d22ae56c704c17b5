"""What the control plane, and tests beside it, are built from: one Go module per program set, because their
dependencies disagree.

Each folder's go.mod pins a program set, go.sum its every dependency by hash, and its `tool` lines name the
programs.

kubernetes and lws ask for the same version of whatever both need, staging modules included: Go keys its build
cache by the version asked for, so LeaderWorkerSet has 197 files of its own to compile and not 3,303. kstatus
does likewise, and is built in a second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class ProgramSet:
    """Programs that are built from one Go module."""

    name: str
    """What the set is called in the cache."""
    module: str
    """The module that the programs are part of."""
    programs: Mapping[str, str]
    """Program name -> its package."""
    version_variables: Sequence[str] = ()
    """What tells the programs their version; `{version}` is the module's, `{minor}` its middle number."""
    manifests: Sequence[str] = field(default=())
    """Files of the module that a start needs; read from the module, never copied into this repository."""
    folder: str = ""
    """The folder that holds go.mod and go.sum, where it is not called like the set."""

    @property
    def directory(self) -> Path:
        return HERE / (self.folder or self.name)

    @property
    def version(self) -> str:
        """The module's version, from go.mod: the only place that names it."""
        text = (self.directory / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require\s+)?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        assert found is not None, f"{self.directory / 'go.mod'} does not require {self.module}"
        return found.group(1)


# Without these the server calls itself v0.0.0-master, and clients that compare versions go astray.
_KUBERNETES_VERSION = (
    "k8s.io/component-base/version.gitVersion={version}",
    "k8s.io/component-base/version.gitMajor=1",
    "k8s.io/component-base/version.gitMinor={minor}",
)

KUBERNETES = ProgramSet(
    name="kubernetes",
    module="k8s.io/kubernetes",
    programs={
        program: f"k8s.io/kubernetes/cmd/{program}"
        for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    version_variables=_KUBERNETES_VERSION,
)
NODE = ProgramSet(
    name="kubernetes-node",
    folder="kubernetes",
    module="k8s.io/kubernetes",
    programs={program: f"k8s.io/kubernetes/cmd/{program}" for program in ("kubelet", "kube-proxy")},
    version_variables=_KUBERNETES_VERSION,
)
COREDNS = ProgramSet(
    name="coredns",
    module="github.com/coredns/coredns",
    programs={"coredns": "."},  # a main of our own
)
ETCD = ProgramSet(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    programs={"etcd": "go.etcd.io/etcd/server/v3"},
)
KWOK = ProgramSet(
    name="kwok",
    module="sigs.k8s.io/kwok",
    programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    manifests=(
        "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml",
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
        "kustomize/stage/pod/fast/pod-complete.yaml",
        "kustomize/stage/pod/fast/pod-delete.yaml",
    ),
)
LWS = ProgramSet(
    name="lws",
    module="sigs.k8s.io/lws",
    programs={"lws-manager": "sigs.k8s.io/lws/cmd"},
    version_variables=("sigs.k8s.io/lws/pkg/version.GitVersion={version}",),
    manifests=(
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        "config/webhook/manifests.yaml",
    ),
)

HELM = ProgramSet(
    name="helm",
    module="helm.sh/helm/v3",
    programs={"helm": "helm.sh/helm/v3/cmd/helm"},
    version_variables=(
        "helm.sh/helm/v3/internal/version.version={version}",
        # The Kubernetes that `helm template` and `helm lint` suppose where they are asked for none.
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=34",
    ),
)

ARGO_CD = ProgramSet(
    name="argocd",
    module="github.com/argoproj/gitops-engine",
    programs={"argocd-diff": "."},  # a main of our own
)
"""Argo CD's comparison alone: Argo CD itself is a web server and much more."""

KSTATUS = ProgramSet(
    name="kstatus",
    module="github.com/fluxcd/cli-utils",
    programs={"kstatus": "."},  # a main of our own
)

FLUX = (
    ProgramSet(
        name="flux-source",
        folder="flux",
        module="github.com/fluxcd/source-controller",
        programs={"source-controller": "github.com/fluxcd/source-controller"},
        manifests=tuple(
            f"config/crd/bases/source.toolkit.fluxcd.io_{plural}.yaml"
            for plural in ("buckets", "gitrepositories", "helmcharts", "helmrepositories", "ocirepositories")
        ),
    ),
    ProgramSet(
        name="flux-kustomize",
        folder="flux",
        module="github.com/fluxcd/kustomize-controller",
        programs={"kustomize-controller": "github.com/fluxcd/kustomize-controller"},
        manifests=("config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",),
    ),
)
"""The last Flux with the client libraries of this Kubernetes; `make flux` builds and tests with it."""

CONTROL_PLANE = (ETCD, KUBERNETES, KWOK, LWS)
