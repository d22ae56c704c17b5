"""Everything that the status of one model is computed from, gathered into one frozen value.

Whoever reads the cluster fills it; nothing in this package asks for more. The clock is not in it: the time
is an argument, and a status is the same for the same observation until a condition flips or a deadline
(failure.py) has passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from bowsprit.api.defaults import REPLICAS
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan, ReplicaPlan
from bowsprit.status.growth import Growth
from bowsprit.status.preflight import Proof


@dataclass(frozen=True, slots=True)
class PodFailure:
    """The last failure that was seen in a replica's pods."""

    reason: str
    """The kubelet's or container's own word: UnexpectedAdmissionError, OOMKilled, Error, …"""
    message: str
    binding: bool = False
    """The pod was refused by its node or did not bind in time (rather than having failed while it ran)."""
    ended: bool = False
    """A container of it has ended (rather than not being able to start)."""
    times: int = 0
    """How often in a row that is known."""
    pause_seconds: float = 0
    """Between the last of those and the next start."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One replica as it is on the cluster: pods that exist, counted by how far they have come."""

    replica: ReplicaPlan
    revision: str
    """Hash of the revision that its pods carry."""
    pods: int = 0
    """Pods that exist, failed ones and those on their way out not counted."""
    pinned: int = 0
    """Of those, pods whose node is decided (bound ones are pinned too)."""
    bound: int = 0
    ready: int = 0
    """Pods that are Ready; the replica serves when all of its pods are."""
    failure: PodFailure | None = None
    lost_nodes: tuple[str, ...] = ()
    """Nodes of the replica that are gone or not Ready."""
    leaving: bool = False
    """Its pods are being deleted; it still holds its GPUs."""

    @property
    def reserved(self) -> bool:
        """Every pod has its node, so every GPU of the replica is held."""
        return self.pinned >= self.replica.layout.pods and not self.lost_nodes and not self.leaving

    @property
    def serves(self) -> bool:
        return self.ready >= self.replica.layout.pods and not self.lost_nodes and not self.leaving


@dataclass(frozen=True, slots=True)
class ApplyError:
    """A child object that the API server refused."""

    target: str
    """What was applied, as the user knows it: `Deployment/llama-3f9c`."""
    message: str
    """The API server's own words."""
    field: str = ""
    """The field that it names, when it names one."""
    invalid: bool = False
    """The object itself is wrong (400, 422), so only a change of the spec helps; else it is tried again."""
    revision: str = ""
    """Whose object it is; empty for what belongs to the model as a whole."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A revision that has failed before requests went to it."""

    revision: str
    reason: str
    message: str
    """What happened, without what becomes of it."""
    time: str
    """RFC 3339."""


@dataclass(frozen=True, slots=True)
class Observed:
    key: ModelKey
    generation: int
    spec: ModelDeploymentSpec | None
    """None when the object cannot be read as v1alpha1; then `faults` says why."""
    faults: tuple[str, ...] = ()
    """What is wrong with the spec, each as `field: problem and cure`."""
    facts: ModelFacts | FactsError | None = None
    """None when nothing was read yet, or with a layout table of the user's own."""
    plan: ModelPlan | None = None
    """None until the first planning pass has answered."""
    units: tuple[Unit, ...] = ()
    target: str | None = None
    """Hash of the revision that the spec asks for."""
    serving: str | None = None
    """Hash of the revision that serves, or did last; None until one has served."""
    lws_installed: bool = True
    """The LeaderWorkerSet CRD is there."""
    apply_errors: tuple[ApplyError, ...] = ()
    refused_pods: tuple[ApplyError, ...] = ()
    """Workloads whose missing pods the API server refuses to their controllers."""
    held_back: bool = False
    """A replica has all its pods, and what they take of their nodes is not free yet."""
    growth: Growth | None = None
    """Pods of the planned revision ask for more than was rendered, and that is planned for."""
    stand_in: str | None = None
    """Hash of the revision that is planned while the one that the spec asks for is not known, or has
    failed."""
    fallback: str | None = None
    """Hash of the revision that is restored when the target fails; None when there is none, or the spec does
    not want it."""
    deadline_seconds: float = inf
    """How long the target may hold its GPUs without another replica becoming ready."""
    failed: Failed | None = None
    """The target has failed; found while the status is computed (failure.py)."""
    proof: Proof | None = None
    """None where the spec asks for none (preflight: Skip)."""

    @property
    def suspended(self) -> bool:
        return self.spec is not None and bool(self.spec.suspend)

    @property
    def wanted(self) -> int:
        """Replicas that the spec asks for now; 0 while suspended."""
        if self.spec is None or self.spec.suspend:
            return 0
        return REPLICAS if self.spec.replicas is None else self.spec.replicas

    @property
    def planned(self) -> str | None:
        """Hash of the revision that is planned and kept right."""
        return self.stand_in or self.target

    @property
    def current(self) -> tuple[Unit, ...]:
        """The units of the planned revision that are to stay."""
        return tuple(unit for unit in self.units if unit.revision == self.planned and not unit.leaving)

    @property
    def attempts(self) -> tuple[Unit, ...]:
        """The units of the planned revision, those that are being removed too."""
        return tuple(unit for unit in self.units if unit.revision == self.planned)

    @property
    def older(self) -> tuple[Unit, ...]:
        """The units of other revisions that still stand."""
        return tuple(unit for unit in self.units if unit.revision != self.planned and not unit.leaving)

    @property
    def reserved(self) -> int:
        """Replicas of the planned revision that hold all of their GPUs."""
        return sum(unit.reserved for unit in self.current)

    @property
    def ready(self) -> int:
        """Replicas of the planned revision that serve."""
        return sum(unit.serves for unit in self.current)

    @property
    def answering(self) -> int:
        """Replicas of any revision that serve."""
        return sum(unit.serves for unit in self.units)

    @property
    def rolling(self) -> bool:
        """Another revision than the planned one still has replicas, or serves."""
        behind = None not in (self.serving, self.planned) and self.serving != self.planned
        return self.wanted > 0 and (bool(self.older) or behind)
