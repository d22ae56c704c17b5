"""Observations of every kind, sensible or not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bowsprit.api.reasons import Reason
from bowsprit.facts.model import FactsError
from bowsprit.facts.report import parse_report
from bowsprit.plan.result import Layout, ModelPlan, PodPlan, Refusal, ReplicaPlan, Stage
from bowsprit.status.attempt import attempt_of
from bowsprit.status.observed import ApplyError, Observed, PodFailure, Unit
from bowsprit.status.preflight import Proof
from tests.unit.status.examples import FACTS, KEY, spec
from tests.unit.status.preflight_pods import PODS

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
node_names = st.sampled_from(["gpu-1", "gpu-2", "gpu-3", "gpu-4"])
gib = st.floats(0, 1000, allow_nan=False).map(lambda number: round(number, 2))
stages = st.builds(Stage, st.integers(0, 100), gib, gib, gib, gib)


@st.composite
def replicas(draw: st.DrawFn) -> ReplicaPlan:
    tensor, pipeline = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 6))
    per_pod = tensor * draw(st.sampled_from([n for n in range(1, pipeline + 1) if pipeline % n == 0]))
    partition = tuple(draw(st.lists(st.integers(1, 100), min_size=pipeline, max_size=pipeline)))
    layout = Layout(draw(words), tensor, pipeline, per_pod, draw(st.sampled_from([partition, ()])))
    pods = tuple(PodPlan(draw(node_names), per_pod) for _ in range(layout.pods))
    memory = tuple(draw(st.lists(stages, max_size=pipeline)))
    return ReplicaPlan(draw(st.integers(0, 9)), layout, pods, memory, draw(st.text(max_size=40)))


def _proof(pod: dict[str, Any], given_up: str) -> Proof:
    attempt = attempt_of(pod)
    assert attempt is not None
    return Proof(parse_report(attempt.report), attempt, given_up)


proofs = st.just(Proof()) | st.builds(
    _proof, st.sampled_from(list(PODS.values())), st.sampled_from(["", "llama-preflight-0123456789"])
)
failures = st.builds(PodFailure, words, words, st.booleans(), st.booleans())


@st.composite
def units(draw: st.DrawFn) -> Unit:
    replica = draw(replicas())
    pods = draw(st.integers(0, replica.layout.pods))
    pinned = draw(st.integers(0, pods))
    ready = draw(st.integers(0, pinned))
    return Unit(
        replica,
        draw(st.sampled_from(["new", "old"])),
        pods=pods,
        pinned=pinned,
        bound=pinned,
        ready=draw(st.sampled_from([ready, pinned])),
        failure=draw(st.none() | failures),
        lost_nodes=draw(st.sampled_from([(), (), (), ("gpu-1",)])),
        leaving=draw(st.sampled_from([False, False, False, True])),
    )


refusals = st.builds(
    Refusal,
    st.sampled_from(
        [Reason.INSUFFICIENT_GPUS, Reason.FRAGMENTED, Reason.DOES_NOT_FIT, Reason.LAYOUT_REFUSED]
    ).map(str),
    words,
    st.integers(0, 100),
    st.integers(0, 100),
    st.none() | words,
    st.booleans(),
)
plans = st.builds(
    ModelPlan,
    st.just(KEY),
    st.integers(0, 3),
    st.lists(replicas(), max_size=3).map(tuple),
    st.just(()),
    st.none() | refusals,
    st.none() | st.integers(1, 9),
)
specs = st.builds(
    lambda replicas, suspend: spec(replicas=replicas, suspend=suspend),
    st.none() | st.integers(0, 3),
    st.sampled_from([None, False, False, True]),
)
errors = st.builds(
    FactsError, st.sampled_from([Reason.CONFIG_MISSING, Reason.CONFIG_INVALID]).map(str), words, words
)
observations = st.builds(
    Observed,
    st.just(KEY),
    st.integers(1, 9),
    st.none() | specs,
    st.lists(words, max_size=2).map(tuple),
    st.none() | st.just(FACTS) | errors,
    st.none() | plans,
    st.lists(units(), max_size=4).map(tuple),
    st.sampled_from([None, "new"]),
    st.sampled_from([None, "new", "old"]),
    st.booleans(),
    st.lists(st.builds(ApplyError, words, words, words, st.booleans()), max_size=2).map(tuple),
    refused_pods=st.lists(st.builds(ApplyError, words, words), max_size=2).map(tuple),
    proof=st.none() | proofs,
    stand_in=st.sampled_from([None, None, "old"]),
)
"""Much of it cannot happen: a status has to be honest even then."""

healthy = st.builds(
    lambda units, wanted: Observed(
        KEY,
        1,
        spec(replicas=wanted),
        facts=FACTS,
        plan=ModelPlan(KEY, wanted, tuple(unit.replica for unit in units[:wanted])),
        units=tuple(units),
        target="new",
        serving="new",
    ),
    st.lists(units(), max_size=3),
    st.integers(0, 3),
)
