"""The ways that a program may take to a schedule, and that must all compute the same: pipelines other than
the standard one, grids other than the cheapest, several vDevices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i64,
)

from irkit.architectures import ARCHITECTURES
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.dialects.task.rates import RATES
from irkit.dialects.types import DYNAMIC, int_array
from irkit.driver.pipelines.standard import LEVELS, STANDARD
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of, target_of, why_illegal
from irkit.schedule.devices import device, device_names, register_device
from irkit.schedule.model import VDevice

CLEANING = ("canonicalize", "cse", "dce")
GRAPH = (
    *CLEANING, "quantise-products", "fold-constants", "fold-batch-norm", "select-tree-strategy",
)  # fmt: skip
TREES = ("tree-to-gemm", "tree-to-traversal", "tree-to-perfect-traversal")
TENSOR = (
    *CLEANING, "fuse-elementwise", "fuse-elementwise", "sink-reshapes", "sink-expansions",
    "propagate-fastmath",
)  # fmt: skip
CPUS = ("cpu1", "cpu2", "cpu3", "cpu7")
OWN = tuple(f"fuzz{number}" for number in range(8))
DEVICES = ("test4", "test4", "h200", *CPUS, *OWN)


def own_device(number: int) -> VDevice:
    """A vDevice whose numbers are drawn, so that other rKernels, grids and placements are the cheapest."""
    rng = random.Random(number)
    kind = ("cpu", "test", "cuda", "test")[number % 4]
    return VDevice(
        name=f"fuzz{number}",
        kind=kind,
        veus=rng.randint(1, 12),
        threads=256 if kind == "cuda" else 1,
        shared_bytes=0 if kind == "cpu" else rng.choice((48, 96, 224)) * 1024,
        wait_ns=10 ** rng.uniform(0, 4),
        multiprocessors=12,
        rates={name: 10 ** rng.uniform(-3, 3) for name in RATES},
        arch=rng.choice(list(ARCHITECTURES)) if kind == "cuda" else "",
    )


for _number, _name in enumerate(OWN):
    if _name not in device_names():
        register_device(_name, own_device(_number))


@dataclass(frozen=True)
class Route:
    """From the graph level to a verified schedule on a vDevice, and on to a compiled program if `compiled`.

    `steps` has a pipeline for each level; `seed` is that of interleavings, and of grids if there are
    random ones. `rows`: the size for which the batch is compiled, None for all sizes.
    """

    device: str
    steps: tuple[str, ...]
    seed: int
    grids: bool = False
    compiled: bool = False
    rows: int | None = None

    def __str__(self) -> str:
        grids = f", grids of seed {self.seed}" if self.grids else ""
        compiled = ", compiled" if self.compiled else ""
        return f"{','.join(self.steps)}{grids}{compiled}"


def routes(rng: random.Random, compiled: bool, sizes: Sequence[int] = ()) -> list[Route]:
    """The standard pipeline, and one of random order; with `compiled` one of them on a CPU, and run there.
    Some are for one of `sizes` of the batch, if there are any."""
    if not compiled:
        found = [standard(rng, rng.choice(DEVICES)), shuffled(rng, rng.choice(DEVICES))]
    else:
        choose = rng.choice((standard, shuffled))
        found = [replace(choose(rng, rng.choice(CPUS)), compiled=True)]
    return [sized(r, rng.choice(sizes)) if sizes and rng.random() < 0.3 else r for r in found]


def sized(route: Route, rows: int) -> Route:
    """The same for one batch size."""
    graph, *rest = route.steps
    steps = (f"specialise-batch{{size={rows}}},{graph}", *rest)
    return replace(route, steps=steps, rows=rows)


def standard(rng: random.Random, name: str) -> Route:
    """The standard pipeline on the vDevice `name`."""
    partition = f'partition-rtasks{{device="{name}"}}'
    steps = [
        ",".join(partition if n == "partition-rtasks" else n for n in STANDARD[level])
        for level in LEVELS
    ]
    return Route(name, tuple(steps), rng.randrange(1000))


def shuffled(rng: random.Random, name: str) -> Route:
    """Any legal order: what a level must have is there once at least, the rest as it comes."""

    def some(names: tuple[str, ...], most: int) -> list[str]:
        return rng.choices(names, k=rng.randint(0, most))

    # Matrices are unpacked and recurrences unrolled before, and strategies chosen before what they choose.
    graph = [
        "unpack-nibbles",
        *some(GRAPH, 4),
        "unroll-recurrence",
        *some(GRAPH, 3),
        "select-tree-strategy",
    ]
    for step in TREES:
        graph += [step, *some(GRAPH, 1)]
    graph.insert(rng.randint(0, len(graph)), "batch-to-front")
    tensor = ["convert-graph-to-tensor", *some(TENSOR, 5)]
    task = ["form-roperators", f'partition-rtasks{{device="{name}"}}']
    residents = ["pin-residents"] * (rng.random() < 0.7)
    accesses = ["select-accesses"] * (rng.random() < 0.7)
    policy = rng.choice(["schedule-wavefront", "schedule-wavefront", "schedule-list"])
    schedule = [policy, *residents, "plan-memory", *accesses, "verify-schedule"]
    steps = tuple(",".join(names) for names in (graph, tensor, task, schedule))
    return Route(name, steps, rng.randrange(1000), grids=rng.random() < 0.7)


def random_grids(rng: random.Random, module: ModuleOp, name: str) -> None:
    """Give the rOperators of a partitioned module one other rKernel, grid and cost that are legal on the
    vDevice `name`, or some of their alternatives, at other costs, so that launches choose differently."""
    vdevice = device(name)
    for op in module.ops:
        if not isinstance(op, ROperatorOp) or op.alternatives is None:
            continue
        offered = op.alternatives.data
        op.offer(
            [_at_another_cost(rng, a) for a in rng.sample(offered, rng.randint(1, len(offered)))]
        )
        if rng.random() < 0.4:
            op.choose(rng.choice(offered))
            for _ in range(4):
                _try_another(rng, op, vdevice)


def _at_another_cost(rng: random.Random, alternative: AlternativeAttr) -> AlternativeAttr:
    facts = {**alternative.facts.data, "cost": FloatAttr(rng.uniform(10.0, 1e5), f64)}
    return AlternativeAttr(DictionaryAttr(facts))


def _try_another(rng: random.Random, op: ROperatorOp, vdevice: VDevice) -> None:
    """Change `op` if what was drawn is legal."""
    root = root_of(op)
    rkernel = rng.choice(registry.candidates(target_of(vdevice), root))
    before = dict(op.properties)
    op.rkernel = StringAttr(rkernel.name)
    op.parameters = DictionaryAttr(
        {k: IntegerAttr(v, i64) for k, v in sorted(rkernel.literals(root).items())}
    )
    op.grid = int_array([_parts(rng, size, vdevice.veus) for size in root.parallel])
    op.cost = FloatAttr(rng.uniform(10.0, 1e5), f64)
    scratch = rkernel.scratch(root, rkernel.literals(root))
    op.scratch = IntegerAttr(scratch, i64) if scratch else None
    op.fastmath = rkernel.fastmath if rkernel.fastmath.data else None
    if why_illegal(op, vdevice) is not None:
        op.properties = before


def _parts(rng: random.Random, size: int, veus: int) -> int:
    if size == DYNAMIC:
        return veus
    return rng.choice((1, 1, min(2, size), rng.randint(1, max(size, 1)), size))
