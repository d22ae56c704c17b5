"""The planner's objective as a CP-SAT model that knows no shortcut: every replica's pods on every node.

It shares nothing with bowsprit.plan but the input and output types, and is meant to be read beside
docs/decisions on the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from bench.clusters import Case
from bowsprit.plan.result import Plan
from bowsprit.plan.wish import MeasuredLayout


@dataclass(frozen=True, slots=True)
class Score:
    """The objective's levels; lower is better throughout."""

    placed: tuple[int, ...]
    """Per priority, the highest first: models with a replica, then replicas, negative."""
    gpus: int
    serving: int
    spanned: int
    broken: int

    @property
    def plain(self) -> tuple[object, ...]:
        return (self.placed, self.gpus, self.broken)


def _serving(rows: Sequence[MeasuredLayout], tensor: int, linked: bool) -> int:
    """Layouts of as many GPUs on the same type that serve better: larger tensor sizes where GPUs are linked,
    smaller ones where they are not."""
    gpus = next(row.tensor * row.min_pipeline for row in rows if row.tensor == tensor)
    equal = [row.tensor for row in rows if row.tensor * row.min_pipeline == gpus]
    return sum(int(other > tensor if linked else other < tensor) for other in equal)


def score_of(case: Case, plan: Plan) -> Score:
    """What a plan scores."""
    linked = {node.product: node.linked for node in case.fleet.nodes}
    priority = {wish.key: wish.priority for wish in case.wishes}
    table = {wish.key: wish.measured or {} for wish in case.wishes}
    placed: list[int] = []
    for level in sorted(set(priority.values()), reverse=True):
        models = [model for model in plan.models if priority[model.key] == level]
        placed += [
            -sum(bool(model.replicas) for model in models),
            -sum(len(model.replicas) for model in models),
        ]
    replicas = [replica for model in plan.models for replica in model.replicas]
    used = {pod.node for replica in replicas for pod in replica.pods}
    return Score(
        placed=tuple(placed),
        gpus=sum(replica.layout.gpus for replica in replicas),
        serving=sum(
            _serving(
                table[model.key][replica.layout.product],
                replica.layout.tensor,
                linked[replica.layout.product],
            )
            for model in plan.models
            for replica in model.replicas
        ),
        spanned=sum(len({pod.node for pod in replica.pods}) for replica in replicas),
        broken=sum(node.free == node.total and node.name in used for node in case.fleet.nodes),
    )


def optimum(case: Case, *, plain: bool = False) -> Score:
    """The best score there is; `plain` leaves out how well layouts serve and the nodes they span."""
    return _Model(case).solve(plain)


class _Model:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.model = cp_model.CpModel()
        self.nodes = case.fleet.nodes
        self.gpus: list = []
        self.serving: list = []
        self.spanned: list = []
        self.on_node: dict[str, list] = {node.name: [] for node in self.nodes}
        self.placed = self._replicas()
        self.broken = [self._broken(node) for node in self.nodes if node.free == node.total and node.free]
        for node in self.nodes:
            self.model.add(sum(self.on_node[node.name]) <= node.free)

    def _replicas(self) -> list:
        levels = []
        for priority in sorted({wish.priority for wish in self.case.wishes}, reverse=True):
            models, replicas = [], []
            for wish in self.case.wishes:
                if wish.priority == priority:
                    chosen = [self._replica(wish) for _ in range(wish.replicas)]
                    for before, after in pairwise(chosen):
                        self.model.add(before >= after)
                    models.extend(chosen[:1])
                    replicas.extend(chosen)
            levels += [-sum(models), -sum(replicas)]
        return levels

    def _replica(self, wish):
        """Whether it is placed; exactly one option then, all of its pods on nodes of one product."""
        used = {node.name: self.model.new_bool_var("") for node in self.nodes}
        options = []
        for product, rows in wish.measured.items():
            for row in rows:
                taken = self.model.new_bool_var("")
                options.append(taken)
                places = [node for node in self.nodes if node.product == product]
                pods = {node.name: self.model.new_int_var(0, row.min_pipeline, "") for node in places}
                self.model.add(sum(pods.values()) == row.min_pipeline * taken)
                for node in places:
                    self.on_node[node.name].append(row.tensor * pods[node.name])
                    self.model.add(pods[node.name] <= row.min_pipeline * used[node.name])
                self.gpus.append(row.tensor * row.min_pipeline * taken)
                self.serving.append(_serving(rows, row.tensor, bool(places) and places[0].linked) * taken)
        self.spanned.extend(used.values())
        placed = self.model.new_bool_var("")
        self.model.add(sum(options) == placed)
        return placed

    def _broken(self, node):
        broken = self.model.new_bool_var("")
        self.model.add(sum(self.on_node[node.name]) <= node.free * broken)
        return broken

    def solve(self, plain: bool) -> Score:
        values = [self._least(level) for level in self.placed]
        gpus = self._least(sum(self.gpus))
        serving = spanned = 0
        if not plain:
            serving = self._least(sum(self.serving))
            spanned = self._least(sum(self.spanned))
        broken = self._least(sum(self.broken))
        return Score(tuple(values), gpus, serving, spanned, broken)

    def _least(self, objective) -> int:
        if isinstance(objective, int):
            return objective
        self.model.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        status = solver.solve(self.model)
        assert status == cp_model.OPTIMAL, solver.status_name(status)
        value = round(solver.objective_value)
        self.model.clear_objective()
        self.model.add(objective <= value)
        return value
