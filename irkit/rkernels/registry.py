"""The registry of rKernels: which there are, what each needs and about what it costs.

This module and the tables it reads import no Numba. A user registers an rKernel of their own with
`register`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from irkit.dialects import te
from irkit.dialects.roots import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError

Target = Literal["cpu", "cuda"]
_FAMILY_MODULES = (
    "argmax",
    "conv",
    "forest",
    "gemm",
    "gemv",
    "map",
    "product",
    "recurrent_cell",
    "reduce",
    "softmax",
)


def _always(root: Root) -> bool:
    return True


@dataclass(frozen=True)
class RKernel:
    """A way to compute one rTask of a family of rOperators.

    `module` and `function` say where its template is (docs/emission.md). `legal` says whether it can
    take a root. `efficiency` is the share of a vEU's arithmetic rate it reaches alone; `overhead_ns`
    is what an rTask costs before it computes. `threads` is its block size on a GPU.
    `scratch_bytes` is shared memory per rTask on a GPU, memory of the vEU's own on a CPU; `parameters`
    become literals of the template. The last three may depend on the root. Where given, `grid(root,
    tasks)` cuts the root into at most `tasks` parts and `part_ns(root, grid)` is what its largest part
    costs; else both follow from the family and the efficiency.
    """

    family: str
    variant: str
    target: Target
    module: str
    function: str
    legal: Callable[[Root], bool] = _always
    efficiency: float | Callable[[Root], float] = 0.2
    overhead_ns: float = 500.0
    scratch_bytes: int | Callable[[Root], int] = 0
    threads: int = 1
    parameters: Mapping[str, int] | Callable[[Root], Mapping[str, int]] = field(
        default_factory=dict[str, int]
    )
    grid: Callable[[Root, int], list[int]] | None = None
    part_ns: Callable[[Root, Sequence[int]], float] | None = None

    @property
    def name(self) -> str:
        """`family.variant`, as in an rOperator's `rkernel`."""
        return f"{self.family}.{self.variant}"

    def scratch(self, root: Root) -> int:
        """Bytes of shared memory that one rTask needs."""
        return self.scratch_bytes(root) if callable(self.scratch_bytes) else self.scratch_bytes

    def share(self, root: Root) -> float:
        """Share of a vEU's arithmetic rate that it reaches on `root`."""
        return self.efficiency(root) if callable(self.efficiency) else self.efficiency

    def literals(self, root: Root) -> Mapping[str, int]:
        """Compile-time parameters for `root`."""
        return self.parameters(root) if callable(self.parameters) else self.parameters


_REGISTERED: dict[tuple[Target, str], list[RKernel]] = {}
_loaded: set[Target] = set()


def register(rkernel: RKernel) -> RKernel:
    """Add an rKernel; the newest of a name wins."""
    known = _REGISTERED.setdefault((rkernel.target, rkernel.family), [])
    known[:] = [k for k in known if k.variant != rkernel.variant]
    known.append(rkernel)
    return rkernel


def _load(target: Target) -> None:
    if target in _loaded:
        return
    _loaded.add(target)
    for name in _FAMILY_MODULES:
        module = importlib.import_module(f"irkit.rkernels.{target}.{name}")
        kernels: Iterable[RKernel] = module.RKERNELS
        for rkernel in kernels:
            register(rkernel)


def candidates(target: Target, root: Root) -> list[RKernel]:
    """rKernels that can compute `root` on `target`. Raises UnsupportedError if there is none."""
    _load(target)
    found = [
        k
        for family in (root.family, *_FALLBACK.get(root.family, ()))
        for k in _REGISTERED.get((target, family), ())
        if k.legal(root)
    ]
    if not found:
        raise UnsupportedError(f"no rKernel of family '{root.family}' for {target}")
    return found


def find(target: Target, name: str) -> RKernel:
    """The rKernel called `family.variant`. Raises UnsupportedError if there is none."""
    _load(target)
    for kernels in _REGISTERED.values():
        for rkernel in kernels:
            if rkernel.target == target and rkernel.name == name:
                return rkernel
    known = sorted(k.name for (t, _), ks in _REGISTERED.items() if t == target for k in ks)
    raise UnsupportedError(f"rKernel '{name}' for {target}; there are {', '.join(known)}")


# A contraction is also a reduction; what a family's own kernels refuse goes to the general one.
_FALLBACK = {
    "gemm": ("product", "tiles", "gemv", "conv", "reduce"),
    "conv": ("product", "tiles", "reduce"),
    "pool": ("reduce",),
    "recurrent_cell": (),
}


def flops(root: Root, rows: int) -> float:
    """Floating-point operations of a whole rOperator, the batch being `rows`."""
    total = 2.0
    for size in (*root.parallel, *root.reduction):
        total *= rows if size == DYNAMIC else size
    return total * max(len(root.chain), 1) * _work(root)


def _work(root: Root) -> int:
    """Operations per output element that the dimensions do not show: comparisons of a forest walk."""
    op = root.op
    if isinstance(op, te.PerfectForestOp | te.ForestOp):
        return tensor_type(op.output).get_shape()[0] * op.depth.value.data
    return 1
