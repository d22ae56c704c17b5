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
from highspy._core import _Highs

MAX_NODES = 5000
"""Branch-and-bound nodes per objective; past it the best solution found so far stands."""

MERGED_RANGE = 100_000

OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.5,
    "mip_max_nodes": MAX_NODES,
}

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

    def minimise(self, objectives: Sequence[Weights], known: Sequence[int] | None = None) -> list[int] | None:
        """Column values that are least by the objectives in their order; None when the rows contradict.

        `known` are values that keep all rows, if there are any at hand: they save the search where no
        better ones can be.
        """
        values = None if known is None else list(known)
        held = list(self.rows)
        for weights in self._merged(objectives):
            if values is None or value_of(weights, values) > self._range(weights)[0]:
                values = self._solve(weights, held) or values
                if values is None:
                    return None
            held.append((weights, -inf, float(value_of(weights, values))))
        return values

    def _merged(self, objectives: Sequence[Weights]) -> list[Weights]:
        """Neighbouring objectives in one, where their numbers stay small enough for floating point."""
        merged: list[Weights] = []
        for weights in filter(None, objectives):
            low, high = self._range(weights)
            steps = high - low + 1
            first = merged[-1] if merged else {}
            first_low, first_high = self._range(first)
            if merged and (first_high - first_low + 1) * steps <= MERGED_RANGE:
                columns = dict.fromkeys([*first, *weights])
                merged[-1] = {c: first.get(c, 0) * steps + weights.get(c, 0) for c in columns}
            else:
                merged.append(weights)
        return merged

    def _range(self, weights: Weights) -> tuple[int, int]:
        """The least and the most that the columns' bounds alone allow."""
        low = sum(weight * self.upper[column] for column, weight in weights.items() if weight < 0)
        high = sum(weight * self.upper[column] for column, weight in weights.items() if weight > 0)
        return low, high

    def _solve(self, weights: Weights, rows: Sequence[tuple[Weights, float, float]]) -> list[int] | None:
        """A solver of its own for each objective: one that is used again after a row was added has given
        answers that are not the least."""
        solver = _Highs()
        for option, value in OPTIONS.items():
            solver.setOptionValue(option, value)
        count = len(self.upper)
        columns = np.arange(count, dtype=np.int32)
        costs = np.zeros(count)
        costs[list(weights)] = list(weights.values())
        solver.addVars(count, np.zeros(count), np.array(self.upper, dtype=np.double))
        solver.changeColsIntegrality(count, columns, np.array([highspy.HighsVarType.kInteger] * count))
        solver.changeColsCost(count, columns, costs)
        for row, lower, upper in rows:
            solver.addRow(
                lower,
                upper,
                len(row),
                np.array(list(row), dtype=np.int32),
                np.array(list(row.values()), dtype=np.double),
            )
        solver.run()
        if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        return [round(value) for value in solver.getSolution().col_value]


def value_of(weights: Weights, values: Sequence[int]) -> int:
    return sum(weight * values[column] for column, weight in weights.items())
