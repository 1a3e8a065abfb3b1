"""FunctionTransformer: NumPy's and SciPy's functions of one number, as graph ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AcosOp,
    AsinhOp,
    AsinOp,
    AtanhOp,
    AtanOp,
    CbrtOp,
    CeilOp,
    CoshOp,
    CosOp,
    DivOp,
    ErfOp,
    Exp2Op,
    Expm1Op,
    ExpOp,
    FloorOp,
    Log1pOp,
    Log2Op,
    Log10Op,
    LogOp,
    MulOp,
    NegOp,
    RoundOp,
    SigmoidOp,
    SinhOp,
    SinOp,
    SqrtOp,
    TanhOp,
    TanOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.column_types import function_by_column
from irkit.frontends.sklearn.importer import Importer, Transformer

Function = Callable[[Importer, SSAValue], SSAValue]


def _one_op(op: type[GraphOp]) -> Function:
    def apply(importer: Importer, x: SSAValue) -> SSAValue:
        return importer.builder(op, x)

    return apply


def _square(importer: Importer, x: SSAValue) -> SSAValue:
    return importer.builder(MulOp, x, x)


def _reciprocal(importer: Importer, x: SSAValue) -> SSAValue:
    return importer.builder(DivOp, importer.constant(x, [1.0], "one"), x)


def _itself(importer: Importer, x: SSAValue) -> SSAValue:
    return x


def _sign(importer: Importer, x: SSAValue) -> SSAValue:
    """1, -1 or 0 (of both zeros); NaN of NaN."""
    y = importer.where(importer.compare(x, "eq", [0.0], "zero"), x, [0.0], "zero")
    y = importer.where(importer.compare(x, "gt", [0.0], "zero"), y, [1.0], "one")
    return importer.where(importer.compare(x, "lt", [0.0], "zero"), y, [-1.0], "minus_one")


def _trunc(importer: Importer, x: SSAValue) -> SSAValue:
    below = importer.compare(x, "lt", [0.0], "zero")
    return importer.builder(
        WhereOp, below, importer.builder(CeilOp, x), importer.builder(FloorOp, x)
    )


def _times(one: float, other: float) -> Function:
    """x times a quotient, which is rounded as x's own type rounds it."""

    def apply(importer: Importer, x: SSAValue) -> SSAValue:
        dtype = importer.dtype(x).type
        return importer.mul(x, [dtype(one) / dtype(other)], "ratio")

    return apply


FUNCTIONS: dict[np.ufunc, Function] = {
    np.abs: _one_op(AbsOp),
    np.arccos: _one_op(AcosOp),
    np.arcsin: _one_op(AsinOp),
    np.arcsinh: _one_op(AsinhOp),
    np.arctan: _one_op(AtanOp),
    np.arctanh: _one_op(AtanhOp),
    np.cbrt: _one_op(CbrtOp),
    np.ceil: _one_op(CeilOp),
    np.cos: _one_op(CosOp),
    np.cosh: _one_op(CoshOp),
    np.deg2rad: _times(np.pi, 180.0),
    np.degrees: _times(180.0, np.pi),
    np.exp: _one_op(ExpOp),
    np.exp2: _one_op(Exp2Op),
    np.expm1: _one_op(Expm1Op),
    np.fabs: _one_op(AbsOp),
    np.floor: _one_op(FloorOp),
    np.log: _one_op(LogOp),
    np.log10: _one_op(Log10Op),
    np.log1p: _one_op(Log1pOp),
    np.log2: _one_op(Log2Op),
    np.negative: _one_op(NegOp),
    np.positive: _itself,
    np.rad2deg: _times(180.0, np.pi),
    np.radians: _times(np.pi, 180.0),
    np.reciprocal: _reciprocal,
    np.rint: _one_op(RoundOp),
    np.sign: _sign,
    np.sin: _one_op(SinOp),
    np.sinh: _one_op(SinhOp),
    np.sqrt: _one_op(SqrtOp),
    np.square: _square,
    np.tan: _one_op(TanOp),
    np.tanh: _one_op(TanhOp),
    np.trunc: _trunc,
}
_OF_SCIPY: dict[str, Function] = {"erf": _one_op(ErfOp), "expit": _one_op(SigmoidOp)}


@cache
def known_functions() -> Mapping[np.ufunc, Function]:
    """NumPy's functions, and those of scipy.special: where scikit-learn is, SciPy is too."""
    from scipy import special

    return FUNCTIONS | {getattr(special, name): made for name, made in _OF_SCIPY.items()}


def why_no_function(parameter: str, function: Any) -> list[str]:
    """Why a function that is a parameter cannot be imported."""
    known = known_functions()
    if isinstance(function, np.ufunc) and function in known:
        return []
    names = ", ".join(f.__name__ for f in known)
    return [f"parameter {parameter}={function!r} (supported: None, NumPy's and SciPy's {names})"]


def _function(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if step.func is None:
        return x
    if importer.dtype(x) == np.bool_:
        raise UnsupportedError(
            f"FunctionTransformer of {step.func.__name__} over booleans, of which NumPy makes numbers of "
            "a type of their own"
        )
    function = known_functions()[step.func]
    if x not in importer.types:
        return function(importer, x)
    whole = [t for t in dict.fromkeys(importer.types[x]) if _keeps(step.func, t)]
    return function_by_column(importer, x, partial(function, importer), whole)


def _keeps(function: np.ufunc, dtype: str) -> bool:
    """Whether a function makes of integers such ones."""
    try:
        return (
            np.dtype(dtype).kind != "f"
            and function.resolve_dtypes((np.dtype(dtype), None))[-1] == dtype
        )
    except TypeError:  # of which it has no meaning
        return False


def _why_not(step: Any) -> list[str]:
    if step.func is None:
        return []
    reasons = why_no_function("func", step.func)
    return reasons or ([f"parameter kw_args={step.kw_args!r}"] if step.kw_args else [])


TRANSFORMERS: dict[str, Transformer] = {
    "FunctionTransformer": Transformer(_function, _why_not, nan="makes"),
}
