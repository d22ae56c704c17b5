"""Integer programs with several objectives, one after the other: a thin and repeatable use of HiGHS.

Each objective is minimised and then held as a row, so that a later one never undoes an earlier one. The same
program always gives the same answer: one thread, a fixed seed, and a bound on the search in nodes, not time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import highspy
import numpy as np

# highspy.Highs writes a banner to standard output before any option can be set; its base class does not.
from highspy import _Highs

MAX_NODES = 5000
"""Branch-and-bound nodes per objective; past it the best solution found so far stands."""

Weights = Mapping[int, int]
"""Integer coefficient by column."""


@dataclass(slots=True)
class Program:
    """Columns are integers from 0 to their upper bound; rows bound weighted sums."""

    upper: list[int] = field(default_factory=list)
    rows: list[tuple[Weights, float, float]] = field(default_factory=list)

    def column(self, upper: int) -> int:
        """A new column; returns its number."""
        self.upper.append(upper)
        return len(self.upper) - 1

    def at_most(self, weights: Weights, bound: int) -> None:
        self.rows.append((weights, -inf, float(bound)))

    def minimise(self, objectives: Sequence[Weights]) -> list[int] | None:
        """Column values that are least by the objectives in their order; None when the rows contradict."""
        solver = self._solver()
        values: list[int] | None = None
        for weights in objectives:
            if not weights:
                continue
            if values is None or value_of(weights, values) > self._floor(weights):
                values = self._solve(solver, weights, values)
                if values is None:
                    return None
            _add_row(solver, weights, -inf, float(value_of(weights, values)))
        return values

    def _floor(self, weights: Weights) -> int:
        """What the objective cannot be below, by the columns' bounds alone."""
        return sum(weight * self.upper[column] for column, weight in weights.items() if weight < 0)

    def _solve(self, solver: _Highs, weights: Weights, incumbent: list[int] | None) -> list[int] | None:
        costs = np.zeros(len(self.upper))
        costs[list(weights)] = list(weights.values())
        solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)
        if incumbent is not None:
            start = highspy.HighsSolution()
            start.col_value = [float(value) for value in incumbent]
            solver.setSolution(start)
        solver.run()
        if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return incumbent
        return [round(value) for value in solver.getSolution().col_value]

    def _solver(self) -> _Highs:
        solver = _Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.99),
            ("mip_max_nodes", MAX_NODES),
        ):
            solver.setOptionValue(option, value)
        count = len(self.upper)
        solver.addVars(count, np.zeros(count), np.array(self.upper, dtype=np.double))
        integers = np.array([highspy.HighsVarType.kInteger] * count)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), integers)
        for weights, lower, upper in self.rows:
            _add_row(solver, weights, lower, upper)
        return solver


def value_of(weights: Weights, values: Sequence[int]) -> int:
    return sum(weight * values[column] for column, weight in weights.items())


def _add_row(solver: _Highs, weights: Weights, lower: float, upper: float) -> None:
    columns = np.array(list(weights), dtype=np.int32)
    solver.addRow(lower, upper, len(columns), columns, np.array(list(weights.values()), dtype=np.double))
