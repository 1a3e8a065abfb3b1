"""An rKernel: a template, what it needs, and about what it costs."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.utils import FastMathFlag

from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.rkernels.boxes import MapOf
from irkit.rkernels.work import Part, Work
from irkit.schedule.model import VDevice

Target = Literal["cpu", "cuda"]
Parameters = Mapping[str, int]
Choices = Mapping[str, Container[int]]


def _always(root: Root) -> bool:
    return True


@dataclass(frozen=True)
class RKernel:
    """A way to compute one rTask of the rOperators that a family takes.

    `module` and `function` say where its template is (docs/emission.md). `legal` says whether it can take a
    root that its family takes. `work(part)` counts what its largest rTask does, in kinds of work that a
    vDevice has rates for; where it is not given, the family's operations are multiply-adds, of whose rate
    the rKernel reaches the share `efficiency`. What every rTask costs, its start and the bytes of its
    operands, is added to either. `threads` is the one block size that it runs with on a GPU; None where
    any number of whole warps will do.
    `parameters`, which may depend on the root, become literals of the template. `choices`, which may too,
    says what values a parameter may have beside its own: none where it is not named. `scratch_bytes`, which
    may depend on the root and the parameters, is shared memory per rTask on a GPU, memory of the vEU's own on
    a CPU.
    `reassociates`: its template sums in another order than the body; `contracts`: products and sums may be
    rounded once, which a GPU's compiler always does. `vectors` are the placeholders of operands that it can
    read 16 bytes at once where VECTOR is 1, `kept` those of which it expects all in shared memory where
    RESIDENT is 1.
    `keeps(root)`: bytes of the operands `kept`, all of which each of its rTasks reads: it is offered where
    they are constants and have room in shared memory, so that a block reads them once a run.
    `stores_again`: its template may give an element to STORE more than once, so it cannot update in place.
    `streams`: it copies operands from global memory asynchronously, so none may stay in shared memory.
    `anywhere`: it reads operands and stores results by plain accesses, wherever they lie: they may in shared
    memory.
    `maps`: the tensor maps by which the copy engine of a GPU copies boxes of operands, by the placeholders
    that they are in the template, MAPS being all of them in this order.
    `wgmma`: its template multiplies by warp groups, which GPUs of one architecture alone can.
    `aligns`: a thread reads runs of elements, one by one, which the compiler reads in vectors where all
    operands are at multiples of 16 bytes, and it is told so.
    `halves`: what its template reads by pointer may be 16-bit floats, which are float32 once read.
    `spreads`: its threads, its warps or its blocks know nothing of each other, so several blocks may share an
    rTask that runs alone. The template says THREAD for a thread's number and THREADS for how many there are;
    or, if it does not say THREAD, RANK for which of RANKS a block is, and THREADS for those of a block.
    READS_AHEAD is 0 in what blocks share, which then hide the way to memory from one another, and 1 where a
    block is alone and had better read ahead. `spreads(part)` is how many threads have something to do.
    `side_by_side`: so many of these blocks are to fit on a multiprocessor at once, if that leaves each thread
    registers enough.
    `clustered`: where an rTask runs alone, as many blocks as its parameter BLOCKS says share it: they run at
    the same time, and read each other's shared memory. RANK is which of RANKS a block is: of one where an
    rTask is a block's own.
    `rows_at_once`: rows of a batch that a block takes about as long for as for one of them; a block that
    runs alone is given so many.
    `schedules(root, tasks, device)`: its template is printed from a schedule, of which these are the rule's,
    the best first, in at most so many parts; the schedule says the grid and the scratch then.
    Where given, `grid(root, tasks)` cuts the root into at most `tasks` parts; else the family does.
    """

    family: str
    variant: str
    target: Target
    module: str
    function: str
    legal: Callable[[Root], bool] = _always
    work: Callable[[Part], Work] | None = None
    efficiency: float = 0.2
    scratch_bytes: int | Callable[[Root, Parameters], int] = 0
    threads: int | None = None
    parameters: Parameters | Callable[[Root], Parameters] = field(default_factory=dict[str, int])
    choices: Choices | Callable[[Root], Choices] = field(default_factory=dict[str, Container[int]])
    reassociates: bool = False
    contracts: bool = False
    vectors: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    keeps: Callable[[Root], int] | None = None
    stores_again: bool = False
    streams: bool = False
    anywhere: bool = False
    grid: Callable[[Root, int], list[int]] | None = None
    aligns: bool = False
    halves: bool = False
    schedules: Callable[[Root, int, VDevice], Sequence[ScheduleAttr]] | None = None
    wgmma: bool = False
    spreads: Callable[[Part], float] | None = None
    side_by_side: int = 1
    clustered: bool = False
    rows_at_once: int = 1
    maps: Mapping[str, MapOf] = field(default_factory=dict[str, MapOf])

    @property
    def name(self) -> str:
        """`family.variant`, as in an rOperator's `rkernel`."""
        return f"{self.family}.{self.variant}"

    @property
    def fastmath(self) -> FastMathFlagsAttr:
        """In what its results may differ from the body's."""
        contracts = self.contracts or self.target == "cuda"
        flags = {FastMathFlag.REASSOC: self.reassociates, FastMathFlag.ALLOW_CONTRACT: contracts}
        return FastMathFlagsAttr([flag for flag, granted in flags.items() if granted])

    def scratch(self, root: Root, parameters: Parameters) -> int:
        """Bytes of scratch that one rTask needs with these parameters."""
        if callable(self.scratch_bytes):
            return self.scratch_bytes(root, parameters)
        return self.scratch_bytes

    def literals(self, root: Root) -> Parameters:
        """Compile-time parameters for `root`."""
        return self.parameters(root) if callable(self.parameters) else self.parameters

    def blocks(self, root: Root) -> int:
        """How many blocks share an rTask that runs alone, where these are clusters; else one."""
        return self.literals(root)["BLOCKS"] if self.clustered else 1

    def refuses_parameters(self, root: Root, parameters: Parameters) -> str | None:
        """Why it cannot run with these parameters on a root that it takes; None if it can."""
        own = self.literals(root)
        choices = self.choices(root) if callable(self.choices) else self.choices
        if set(own) != set(parameters):
            return f"its parameters are {_names(own)}, got {_names(parameters)}"
        for name, value in parameters.items():
            if value != own[name] and value not in choices.get(name, ()):
                return f"parameter {name} cannot be {value}"
        return None


def _names(parameters: Parameters) -> str:
    return ", ".join(sorted(parameters)) or "none"
