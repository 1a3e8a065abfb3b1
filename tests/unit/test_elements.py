"""Every arith and math op, printed and run, computes what the tensor interpreter says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    FloatAttr,
    IntegerAttr,
    UnrealizedConversionCastOp,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects.float_remainder import RemFOp
from irkit.dialects.types import numpy_dtype, ui8, ui32, ui64
from irkit.dialects.types import tensor as tensor_of
from irkit.errors import UnsupportedError
from irkit.interp.scalars import _FUNCTIONS, evaluate_scalar
from irkit.rkernels.binding.elements import ElementPrinter

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e-30, 1e30, np.inf, -np.inf, np.nan]
WHOLE = [0, 1, -1, 2, -7, 7, 100, -128, 127]
FLAGS = [False, True]


@dataclass(frozen=True)
class Case:
    """An op over all pairs (or triples) of values of its operand types."""

    name: str
    make: Callable[..., Operation]
    types: tuple[Attribute, ...]
    positive: bool = False
    shift: bool = False


def _values(t: Attribute) -> np.ndarray:
    if t == i1:
        return np.array(FLAGS)
    return np.array(SPECIAL if t in (f32, f64) else WHOLE).astype(numpy_dtype(t))


def _same(op: type[Operation], *types: Attribute, count: int = 2, **more: bool) -> list[Case]:
    return [Case(f"{op.name} {t}", op, (t,) * count, **more) for t in types]


def _to(op: type[Operation], *pairs: tuple[Attribute, Attribute], **more: bool) -> list[Case]:
    return [
        Case(f"{op.name} {a} to {b}", lambda x, op=op, b=b: op(x, b), (a,), **more)
        for a, b in pairs
    ]


EXACT = (
    "math.absf",
    "math.absi",
    "math.ceil",
    "math.copysign",
    "math.floor",
    "math.fma",
    "math.ipowi",
    "math.roundeven",
    "math.sqrt",
)
FLOATS, INTEGERS = (f32, f64), (i8, i32, i64)
CASES = [
    case
    for cases in (
        *(
            _same(op, *FLOATS)
            for op in (
                arith.AddfOp,
                arith.SubfOp,
                arith.MulfOp,
                arith.DivfOp,
                arith.MaximumfOp,
                arith.MinimumfOp,
            )
        ),
        *(
            _same(op, *INTEGERS)
            for op in (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MaxSIOp, arith.MinSIOp)
        ),
        *(_same(op, i1, *INTEGERS) for op in (arith.AndIOp, arith.OrIOp, arith.XOrIOp)),
        _same(arith.DivSIOp, *INTEGERS, positive=True),
        *(_same(op, *FLOATS) for op in (math.PowFOp, math.Atan2Op, math.CopySignOp, RemFOp)),
        _same(math.FmaOp, *FLOATS, count=3),
        *(_same(op, *INTEGERS) for op in (arith.MaxUIOp, arith.MinUIOp)),
        *(
            _same(op, *INTEGERS, positive=True)
            for op in (arith.RemSIOp, arith.DivUIOp, arith.RemUIOp)
        ),
        *(
            [Case(f"{op.name} {t}", lambda x, y, op=op: op(x, y), (t, t), shift=True)]
            for op in (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
            for t in INTEGERS
        ),
        [Case("math.ipowi i64", math.IPowIOp, (i64, i64), shift=True)],
        *(
            _same(op, *FLOATS, count=1)
            for op in (
                arith.NegfOp,
                math.AbsFOp,
                math.AcosOp,
                math.AcoshOp,
                math.AsinOp,
                math.AsinhOp,
                math.AtanOp,
                math.AtanhOp,
                math.CbrtOp,
                math.CeilOp,
                math.CosOp,
                math.CoshOp,
                math.ErfOp,
                math.Exp2Op,
                math.ExpM1Op,
                math.ExpOp,
                math.FloorOp,
                math.Log10Op,
                math.Log1pOp,
                math.Log2Op,
                math.LogOp,
                math.RoundEvenOp,
                math.SinOp,
                math.SinhOp,
                math.SqrtOp,
                math.TanOp,
                math.TanhOp,
            )
        ),
        _same(math.AbsIOp, i32, i64, count=1),
        _to(arith.ExtFOp, (f32, f64)),
        _to(arith.TruncFOp, (f64, f32)),
        _to(arith.SIToFPOp, (i8, f32), (i32, f64), (i64, f64)),
        _to(arith.UIToFPOp, (i1, f32), (i1, f64), (i8, f32), (i64, f64)),
        _to(arith.FPToSIOp, (f32, i32), (f64, i64), positive=True),
        _to(arith.ExtSIOp, (i8, i32), (i32, i64)),
        _to(arith.ExtUIOp, (i1, i8), (i1, i64), (i8, i32), (i32, i64)),
        _to(arith.FPToUIOp, (f32, i32), (f64, i64), shift=True),
        [
            Case(f"{a} as {b}", lambda x, b=b: UnrealizedConversionCastOp.get([x], [b]), (a,))
            for a, b in ((i8, ui8), (ui8, i8), (i64, ui64), (ui64, i64), (i32, ui32))
        ],
        _to(arith.TruncIOp, (i64, i32), (i32, i8)),
        [
            Case(f"cmpf {n} {t}", lambda a, b, n=n: arith.CmpfOp(a, b, n), (t, t))
            for t in FLOATS
            for n in range(16)
        ],
        [
            Case(f"cmpi {n} {t}", lambda a, b, n=n: arith.CmpiOp(a, b, n), (t, t))
            for t in INTEGERS
            for n in range(10)
        ],
        [Case(f"select {t}", arith.SelectOp, (i1, t, t)) for t in (i1, f32, f64, i32)],
    )
    for case in cases
]


def _operands(case: Case) -> list[np.ndarray]:
    grids = np.meshgrid(*(_values(t) for t in case.types), indexing="ij")
    flat = [np.ascontiguousarray(g.reshape(-1)) for g in grids]
    if case.shift:
        # Only whole numbers that an unsigned type holds, and fewer bits than there are.
        keep = np.all([(a >= 0) & (a < 8) for a in flat], axis=0)
        return [a[keep] for a in flat]
    if not case.positive:
        return flat
    # Division by zero, and what no integer holds, have no meaning.
    keep = np.all(
        [np.isfinite(a) & (np.abs(a.astype(float)) < 1e9) & (a != 0) for a in flat], axis=0
    )
    if flat[0].dtype.kind == "i":
        keep &= flat[0] != np.iinfo(flat[0].dtype).min
    return [a[keep] for a in flat]


def _printed(case: Case) -> tuple[Operation, str, Attribute]:
    """The op, and a function f(p0, p1, ..., out, n) that applies it element by element."""
    size = len(_operands(case)[0])
    block = Block(arg_types=[*case.types, f32])
    op = case.make(*block.args[:-1])
    result = op.results[0].type
    block.erase_arg(block.args[-1])
    block.insert_arg(result, len(case.types))
    block.add_ops([op, linalg.YieldOp(op.results[0])])
    outer = Block(arg_types=[tensor_of(t, (size,)) for t in case.types])
    empty = tensor.EmptyOp([], tensor_of(result, (size,)))
    identity = AffineMapAttr(AffineMap.identity(1))
    generic = linalg.GenericOp(
        list(outer.args),
        [empty.tensor],
        Region(block),
        [identity] * (len(case.types) + 1),
        [IteratorTypeAttr.parallel()],
        [tensor_of(result, (size,))],
    )
    outer.add_ops([empty, generic])
    printer = ElementPrinter(indent=2)
    text = printer.element(generic.results[0], ("i",))
    pointers = ", ".join(f"p{n}" for n in range(len(case.types)))
    lines = "\n".join(printer.lines)
    _KEPT.append(outer)
    return (
        op,
        f"({pointers}, out, n):\n    for i in range(n):\n{lines}\n        out[i] = {text}\n",
        result,
    )


_KEPT: list[Block] = []


@pytest.fixture(scope="module")
def compiled():
    """All cases as one module, printed and compiled as an emitted module is."""
    import math as libm

    import numba

    from irkit.runtime.intrinsics.cpu import cbrt, exp2, floor, fmod, ipow, log2, rint
    from irkit.runtime.intrinsics.cpu_bits import fma

    scope = {
        name: getattr(numba, name)
        for name in (
            *(
                "float32",
                "float64",
                "int8",
                "int32",
                "int64",
                "uint8",
                "uint16",
                "uint32",
                "uint64",
            ),
            "njit",
        )
    }
    scope |= {"math": libm, "floor": floor, "rint": rint, "ipow": ipow}
    scope |= {"cbrt": cbrt, "exp2": exp2, "fma": fma, "fmod": fmod, "log2": log2}
    found, text = {}, ""
    for number, case in enumerate(CASES):
        op, body, result = _printed(case)
        text += f'@njit(error_model="numpy")\ndef f{number}{body}\n'
        found[case.name] = (number, op, result)
    exec(compile(text, "<elements>", "exec"), scope)
    return {name: (scope[f"f{n}"], op, result) for name, (n, op, result) in found.items()}


def in_memory(array: np.ndarray) -> np.ndarray:
    """Booleans are bytes in memory."""
    return array.view(np.uint8) if array.dtype == bool else array


@pytest.mark.parametrize("family", sorted({c.name.split()[0] for c in CASES}))
def test_printed_ops_compute_what_the_interpreter_says(compiled, family):
    for case in CASES:
        if case.name.split()[0] != family:
            continue
        function, op, result = compiled[case.name]
        operands = _operands(case)
        want = evaluate_scalar(op, list(operands))
        got = np.zeros(len(operands[0]), numpy_dtype(result))
        function(*(in_memory(a) for a in operands), in_memory(got), len(got))
        exact = not family.startswith("math.") or family in EXACT
        tolerance = 0 if exact else 4 * np.finfo(got.dtype).eps
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=0, err_msg=case.name)
        if exact and got.dtype.kind == "f":
            zeros = (want == 0) & (got == 0)
            np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def test_every_op_of_the_interpreter_is_tried():
    tried = {type(c.make(*Block(arg_types=c.types).args)) for c in CASES}
    assert set(_FUNCTIONS) - tried == {arith.IndexCastOp}


@pytest.mark.parametrize(
    ("make", "types", "words"),
    [
        (lambda a: arith.TruncIOp(a, i1), (i8,), "'arith.trunci' from i8 to i1"),
        (arith.MaxSIOp, (i1, i1), "'arith.maxsi' from i1 to i1"),
        (math.RsqrtOp, (f32,), "'math.rsqrt' from f32 to f32"),
        (arith.CeilDivSIOp, (i32, i32), "'arith.ceildivsi'"),
    ],
)
def test_other_ops_are_refused(make, types, words):
    block = Block(arg_types=types)
    op = make(*block.args)
    scope: dict[SSAValue, str] = {a: f"v{a.index}" for a in block.args}
    with pytest.raises(UnsupportedError) as info:
        ElementPrinter().expression(op, scope, ())
    assert words in str(info.value)


@pytest.mark.parametrize(
    ("value", "t", "text"),
    [
        (1.5, f32, "float32(1.5)"),
        (float("nan"), f64, "float64(math.nan)"),
        (float("-inf"), f32, "float32(-math.inf)"),
        (-0.0, f32, "float32(-0.0)"),
        (7, i64, "int64(7)"),
        (-1, i1, "True"),
        (0, i1, "False"),
    ],
)
def test_constants(value, t, text):
    attr = FloatAttr(value, t) if t in FLOATS else IntegerAttr(value, t)
    assert ElementPrinter().expression(arith.ConstantOp(attr), {}, ()) == text
