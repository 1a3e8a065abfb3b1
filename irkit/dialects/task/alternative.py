"""`#task.alternative`: one way to run an rOperator, offered and not yet chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.task.costs import cost_facts, costs_by_rows, costs_fault
from irkit.dialects.types import int_array, ints

_KINDS: dict[str, type[Attribute]] = {
    "rkernel": StringAttr,
    "grid": DenseArrayBase,
    "parameters": DictionaryAttr,
    "cost": FloatAttr,
    "scratch": IntegerAttr,
    "fastmath": FastMathFlagsAttr,
    "measured_on": StringAttr,
    "batches": DenseArrayBase,
    "costs": DenseArrayBase,
    "schedule": ScheduleAttr,
}
_OPTIONAL = frozenset({"scratch", "fastmath", "measured_on", "batches", "costs", "schedule"})


@irdl_attr_definition
class AlternativeAttr(ParametrizedAttribute):
    """One way to run an rOperator: what its `rkernel`, `grid`, `parameters`, `cost`, `scratch`,
    `fastmath`, `measured_on`, `batches`, `costs` and `schedule` would be; but for the first four they may be
    absent, as there.

    ```mlir
    #task.alternative<{rkernel = "map.rows", grid = array<i64: 4>, parameters = {}, cost = 100.0 : f64}>
    ```
    """

    name = "task.alternative"
    facts: DictionaryAttr

    NAMES: ClassVar[tuple[str, ...]] = tuple(_KINDS)
    """The properties of an rOperator that it stands for."""

    @staticmethod
    def of(
        rkernel: str,
        grid: Sequence[int],
        cost: float,
        parameters: Mapping[str, int],
        scratch: int = 0,
        fastmath: FastMathFlagsAttr | None = None,
        costs: Mapping[int, float] | None = None,
        schedule: ScheduleAttr | None = None,
    ) -> AlternativeAttr:
        """From its parts: `cost` in ns an rTask, `scratch` in bytes an rTask."""
        facts: dict[str, Attribute] = {
            "rkernel": StringAttr(rkernel),
            "grid": int_array(list(grid)),
            "parameters": DictionaryAttr({k: IntegerAttr(v, i64) for k, v in parameters.items()}),
            "cost": FloatAttr(cost, f64),
        }
        if scratch:
            facts["scratch"] = IntegerAttr(scratch, i64)
        if fastmath is not None and fastmath.data:
            facts["fastmath"] = fastmath
        if schedule is not None:
            facts["schedule"] = schedule
        return AlternativeAttr(DictionaryAttr(facts | cost_facts(costs or {})))

    @property
    def rkernel(self) -> str:
        """The rKernel's name."""
        return cast("StringAttr", self.facts.data["rkernel"]).data

    @property
    def grid(self) -> tuple[int, ...]:
        """Into how many parts each parallel dimension of the root is cut."""
        return tuple(ints(cast("DenseArrayBase", self.facts.data["grid"])))

    @property
    def tasks(self) -> int:
        """How many rTasks that is."""
        return math.prod(self.grid)

    @property
    def cost_ns(self) -> float:
        """Time of one rTask, in ns: an estimate, or measured."""
        return cast("FloatAttr", self.facts.data["cost"]).value.data

    @property
    def is_measured(self) -> bool:
        """Whether the time of an rTask was measured; else it is estimated."""
        return "measured_on" in self.facts.data

    @property
    def costs(self) -> dict[int, float]:
        """Rows of the batch -> time of one rTask, in ns; empty where that is said of no batch."""
        return costs_by_rows(self.facts.data)

    def taking(
        self, measured_ns: float, machine: str, costs: Mapping[int, float] | None = None
    ) -> AlternativeAttr:
        """The same with the time of one rTask that was measured on a machine, or those by rows."""
        facts: dict[str, Attribute] = {
            "cost": FloatAttr(measured_ns, f64),
            "measured_on": StringAttr(machine),
        }
        return AlternativeAttr(
            DictionaryAttr({**self.facts.data, **facts, **cost_facts(costs or {})})
        )

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch of one rTask."""
        scratch = self.facts.data.get("scratch")
        return cast("IntegerAttr", scratch).value.data if scratch is not None else 0

    def verify(self) -> None:
        found = self.facts.data
        for name in found:
            if name not in _KINDS:
                raise VerifyException(f"'task.alternative' has no '{name}'")
        for name, kind in _KINDS.items():
            if name not in found and name not in _OPTIONAL:
                raise VerifyException(f"'task.alternative' expects '{name}'")
            if name in found and not isinstance(found[name], kind):
                raise VerifyException(
                    f"'task.alternative' expects another '{name}' than {found[name]}"
                )
        fault = costs_fault(found)
        if fault is not None:
            raise VerifyException(f"'task.alternative' {fault}")
        if min(self.grid, default=1) < 1:
            raise VerifyException(
                f"'task.alternative' expects a grid of 1 or more, got {found['grid']}"
            )
