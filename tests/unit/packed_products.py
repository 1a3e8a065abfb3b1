"""Products of packed terms, emulated: what packs them and what multiplies them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import cuda_emulator
import ml_dtypes
import numpy as np
from emulated_bulk import BoxMap
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import irkit
from irkit.context import IrkitContext
from irkit.dialects import te
from irkit.dialects.packed_terms import FORMATS, SCALED, packed
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array, tensor_type
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.lower.task_to_numba.walkers_cuda import ranked
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import product_packed
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source

SMALL = {"BM": 64, "BN": 64, "WN": 32}
BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": BF16}


@dataclass(frozen=True)
class Case:
    """x times w and a ReLU, if any; w lies transposed or not."""

    m: int
    k: int
    n: int
    transposed: bool = False
    precision: str = "float32"
    element: str = "f32"
    relu: bool = True
    terms: str = ""
    """How they are packed, where there is a choice."""

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.m, self.k), (self.n, self.k) if self.transposed else (self.k, self.n)

    def text(self) -> str:
        x, w = (f"tensor<{r}x{c}x{self.element}>" for r, c in self.shapes)
        y = f"tensor<{self.m}x{self.n}x{self.element}>"
        lies = "true" if self.transposed else "false"
        how = f"{{trans_a = false, trans_b = {lies}, alpha = 1.0 : f64, beta = 0.0 : f64}}"
        bias = f"tensor<{self.n}x{self.element}>"
        return (
            f"func.func @main(%x: {x}, %w: {w}, %b: {bias}) -> {y} "
            f'attributes {{irkit.precision = "{self.precision}"}} {{\n'
            f"  %p = graph.gemm %x, %w, %b {how} : ({x}, {w}, {bias}) -> {y}\n"
            + (
                f"  %y = graph.relu %p : ({y}) -> {y}\n  func.return %y : {y}\n}}\n"
                if self.relu
                else f"  func.return %p : {y}\n}}\n"
            )
        )

    def arrays(self, seed: int) -> tuple[Any, Any]:
        random = np.random.default_rng(seed)
        x, w = (random.standard_normal(s).astype(np.float32) for s in self.shapes)
        return x.astype(NAMES[self.element]), w.astype(NAMES[self.element])

    def want(self, x: Any, w: Any) -> Any:
        right = w.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.maximum(x.astype(np.float64) @ (right.T if self.transposed else right), 0)


def formed(text: str, *passes: str) -> ModuleOp:
    """The module of a text, at the task level, after `passes`."""
    module = irkit.parse(text)
    ctx = IrkitContext()
    register_dialects(ctx)
    for level in ("graph", "tensor"):
        run_level(ctx, module, level, "h200")
    pipeline = build_pipeline(",".join(("form-roperators", *passes)), all_passes())
    PipelineRunner(ctx).run(module, pipeline)
    return module


PACK = 'pack-products{device="h200" always=true}'
SCALE = 'pack-products{device="h200" always=true terms="scaled"}'


def roperators(case: Case, *passes: str) -> dict[str, ROperatorOp]:
    """The rOperators of a case, whose product is packed unless there are no passes."""
    module = formed(case.text(), *passes)
    return {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}


def run(
    op: ROperatorOp, variant: str, parameters: Any, arrays: list[Any], tasks: int | list[int],
    only: int | None = None, ranks: int = 1,
) -> None:  # fmt: skip
    """One rOperator by an rKernel, emulated: in at most so many rTasks, or on a grid; all, or `only` one. Of
    each the `ranks` blocks of a cluster have a share."""
    root, rkernel = root_of(op), registry.find("cuda", variant)
    assert rkernel.legal(root)
    cut = rkernel.grid or families.find(rkernel.family).grid
    op.grid = int_array(cut(root, tasks) if isinstance(tasks, int) else tasks)
    binder = Binder(op, root, "cuda")
    families.find(rkernel.family).bind(binder)
    given = {"THREAD": "thread_index()", "THREADS": 256, "VECTOR": 1, **parameters(root)}
    names = {**binder.binding.names, **ranked(ranks), **{k: str(v) for k, v in given.items()}}
    named = {name: f"map{n}" for n, name in enumerate(rkernel.maps)}
    names |= {**named, "MAPS": ", ".join(named.values())}
    boxed = [made(root, given) for made in rkernel.maps.values()]
    arrays = [*arrays, *(BoxMap(arrays[one.operand], one) for one in boxed)]
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    text = "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body])
    cuda_emulator.run_text(text, "kernel", arrays, op.tasks, 1, 256, 1 << 18, only, ranks=ranks)


def shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(tensor_type(value).get_shape())


def pack(op: ROperatorOp, x: Any, tasks: int, ranks: int = 1, scaled: str = "scaled") -> Any:
    """Packed terms, held to what `packed` makes of them; by which rKernel where they are scaled."""
    (made,) = (o for o in op.body.block.ops if isinstance(o, te.PackOp))
    name = made.precision.data
    want = packed(x, name, made.depth.value.data, made.by_k)
    got = np.full_like(want, np.nan)
    rkernel = registry.find("cuda", f"pack.{scaled if name == SCALED else 'pieces'}")
    run(op, rkernel.name, rkernel.literals, [x, got], tasks, ranks=ranks)
    kind = f"u{want.dtype.itemsize}"
    for block, (given, right) in enumerate(zip(got, want, strict=True)):
        if block < len(want) - FORMATS[name].headers:
            np.testing.assert_array_equal(given.view(kind), right.view(kind))
        else:
            # What terms have lost is summed in another order.
            np.testing.assert_allclose(given.view("f4"), right.view("f4"), rtol=1e-5)
    return got


def product(
    case: Case, x: Any, w: Any, tasks: int = 1, variant: str = "64x64", ranks: int = 1
) -> Any:
    """What the rKernels make of a case, packing first."""
    ops = roperators(case, SCALE if case.terms else PACK)
    known = {a.shape: a for a in (x, w)}
    packs = [
        pack(ops[n], known[shape(ops[n].body.block.args[0])], tasks) for n in ("pack_0", "pack_1")
    ]
    y = np.full((case.m, case.n), np.nan, NAMES[case.element])
    bias = np.zeros(case.n, NAMES[case.element])
    rkernel = registry.find("cuda", f"product.packed{variant}")
    parameters = rkernel.literals
    if variant == "64x64":
        parameters = partial(product_packed.parameters_of, SMALL)
    known |= {a.shape: a for a in (bias, *packs)}
    assert len(known) == 5, "operands are told apart by their shapes"
    op = ops["gemm_0"]
    arrays = [known[shape(a)] for a in op.body.block.args]
    run(op, f"product.packed{variant}", parameters, [*arrays, y], tasks, ranks=ranks)
    return y


def check_as_exact_as_plain_sums(y: Any, x: Any, w: Any, few: bool) -> None:
    """Each error of x times transposed w beside the sum of magnitudes; `few`: large terms are rare, so that
    one product may be nearly all of a sum."""
    plain = np.zeros_like(y)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(x.shape[1]):
            plain += x[:, k, None] * w[None, :, k]
    want, size = (f(x.astype(float)) @ f(w.astype(float)).T for f in (np.asarray, np.abs))
    held = np.isfinite(plain) & (size > 1e-30)
    off, most = (np.abs(v - want)[held] / size[held] for v in (y, plain))
    assert off.max() <= max(1.25 * most.max(), 4.7e-7 if few else 2e-7)
    assert not np.isfinite(y[np.abs(want) > 3.5e38]).any()
