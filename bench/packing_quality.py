"""How often the planner's answer is the optimum, on random small clusters, beside an exact solver and a
greedy.

Target: equal in what is placed, in GPUs and in nodes broken into in at least 99% of 300 clusters, and never
an invalid plan."""

from __future__ import annotations

from collections import Counter
from time import perf_counter

from bench.clusters import FAMILIES, Case, case
from bench.exact import optimum, score_of
from bench.figure import Figure
from bench.greedy import greedy_plan
from bowsprit.plan.planner import plan
from bowsprit.plan.result import Plan

CASES = 300


def faults(case: Case, plan: Plan) -> list[str]:
    """What makes a plan invalid: GPUs that are not there, replicas that are not whole, types that are
    mixed."""
    free = {node.name: node.free for node in case.fleet.nodes}
    product = {node.name: node.product for node in case.fleet.nodes}
    found = []
    for model in plan.models:
        found += [f"{model.key}: {len(model.replicas)} of {model.wanted}"] * (
            len(model.replicas) > model.wanted
        )
        for replica in model.replicas:
            layout = replica.layout
            if sum(pod.gpus for pod in replica.pods) != layout.tensor * layout.pipeline:
                found.append(f"{model.key}/{replica.index}: not whole")
            if any(pod.gpus != layout.gpus_per_pod or pod.gpus % layout.tensor for pod in replica.pods):
                found.append(f"{model.key}/{replica.index}: uneven pods")
            if {product[pod.node] for pod in replica.pods} != {layout.product}:
                found.append(f"{model.key}/{replica.index}: mixed GPU types")
            for pod in replica.pods:
                free[pod.node] -= pod.gpus
    return found + [f"{node}: {-left} too many" for node, left in free.items() if left < 0]


def measure(cases: int = CASES) -> list[Figure]:
    equal, plain, greedy_equal, invalid = 0, 0, 0, 0
    by_family: Counter[str] = Counter()
    seconds = slowest = 0.0
    for number in range(cases):
        one = case(number)
        start = perf_counter()
        answer = plan(one.wishes, one.fleet)
        took = perf_counter() - start
        seconds, slowest = seconds + took, max(slowest, took)
        best, best_plain = optimum(one), optimum(one, plain=True)
        score = score_of(one, answer)
        equal += score == best
        by_family[FAMILIES[number % len(FAMILIES)]] += score == best
        plain += score.plain == best_plain.plain
        greedy_equal += score_of(one, greedy_plan(one.wishes, one.fleet)) == best
        invalid += bool(faults(one, answer))
        if score != best:
            print(f"    {one.name}: {score} is not {best}")
    share = 100 * equal / cases
    families = ", ".join(f"{family} {by_family[family]}" for family in FAMILIES)
    return [
        Figure(
            "equal to the optimum (placed, GPUs, serving, nodes spanned, nodes broken into)",
            share,
            f"% of {cases} clusters; {families}",
            "at least 99%",
            share >= 99,
            f"greedy {100 * greedy_equal / cases:.1f}%",
        ),
        Figure(
            "equal on the plain reading (placed, GPUs, nodes broken into)", 100 * plain / cases, "%", "", None
        ),
        Figure("invalid plans", invalid, "plans", "none", invalid == 0),
        Figure(
            "time of a plan",
            1000 * seconds / cases,
            f"ms on average, {1000 * slowest:.0f} ms at most",
            "",
            None,
        ),
    ]
