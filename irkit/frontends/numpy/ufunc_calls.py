"""Calls of universal functions on traced arrays: dtypes by NumPy, broadcasting, `out=`, `where=`, methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from irkit.dialects.graph import WhereOp
from irkit.frontends.numpy.arrays import TracedArray, empty, fresh, is_traced, value_of
from irkit.frontends.numpy.complex_calls import complex_call
from irkit.frontends.numpy.operands import WEAK, Operand, operand
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.powers import check_power, is_uniform, uniform_power
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.frontends.numpy.ufuncs import Rule, rule_of
from irkit.frontends.numpy.writing import check_writeable

OPTIONS = ("out", "where", "casting", "order", "dtype", "subok", "signature", "sig")


def ufunc_call(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What `__array_ufunc__` returns. Raises UnsupportedError, and what NumPy would of dtypes and shapes."""
    from irkit.frontends.numpy import accumulating, indexing, linear, reductions

    if ufunc.signature is not None:
        return linear.product_call(ufunc, method, inputs, kwargs)
    if method in ("accumulate", "reduceat") and operand(inputs[0]).shape == ():
        raise TypeError(f"cannot {method} on a scalar")
    match method:
        case "__call__":
            return _call(ufunc, inputs, kwargs)
        case "reduce":
            return reductions.ufunc_reduce(ufunc, *inputs, **kwargs)
        case "accumulate":
            return reductions.ufunc_accumulate(ufunc, *inputs, **kwargs)
        case "reduceat":
            return accumulating.reduceat(ufunc, *inputs, **kwargs)
        case "outer":
            # Numbers of Python's are arrays here, whose dtype counts.
            given = [np.asarray(x) if type(x) in WEAK else x for x in inputs]
            left, right = (operand(x) for x in given)
            wide = np.reshape(given[0], left.shape + (1,) * len(right.shape))
            return ufunc(wide, given[1], **kwargs)
        case "at" if len(inputs) == 3 and not kwargs:
            indexing.combine_at(ufunc, *inputs)
            return None
        case _:
            raise refused(f"{ufunc.__name__}.{method}")


def _call(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    unknown = set(kwargs) - set(OPTIONS)
    if unknown:
        raise refused(f"{ufunc.__name__} with {', '.join(sorted(unknown))}=")
    rule, operands = rule_of(ufunc), [operand(x) for x in inputs]
    if rule is None and not any(o.is_complex for o in operands):
        return _of_host(ufunc, inputs, kwargs)
    if rule is not None and ufunc.nout > 1:
        return _several(ufunc, rule, inputs, kwargs)
    out = output_of(kwargs.get("out"))
    dtypes = resolved(ufunc, operands, out, kwargs)
    shape = _broadcast(operands)
    if ufunc is np.power and 0 not in shape:
        check_power(operands[1], dtypes[-1])
    mask = kwargs.get("where", True)
    if mask is not True:
        shape = np.broadcast_shapes(shape, operand(mask).shape)
    if out is not None and np.broadcast_shapes(shape, out.shape) != out.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {out.shape} doesn't match the broadcast "
            f"shape {shape}"
        )
    if 0 in shape:
        return out if out is not None else empty(shape, dtypes[-1])
    r = recorder()
    result = r.expand(r.cast(_computed(ufunc, rule, operands, dtypes), dtypes[-1]), shape)
    if out is None and mask is not True:
        raise refused(f"{ufunc.__name__} with where= and no out=: NumPy leaves elements undefined")
    if out is None:
        made = _made(result, operands, kwargs.get("order", "K"))
        made.spot.scalar = made.spot.scalar and kwargs.get("out") is None
        return made
    return store(result, out, mask)


def _computed(
    ufunc: np.ufunc, rule: Rule | None, operands: Sequence[Operand], dtypes: Sequence[np.dtype[Any]]
) -> Value:
    """What the function is of these operands."""
    if dtypes[0].kind == "c":
        return complex_call(ufunc, operands, dtypes)
    r = recorder()
    assert rule is not None
    if (certain := _certain(ufunc, operands, dtypes)) is not None:
        return r.constant(np.array(certain))
    values = [o.value(t) for o, t in zip(operands, dtypes, strict=False)]
    if ufunc is np.power and dtypes[0].kind == "f" and is_uniform(*operands):
        return uniform_power(operands[1].known, *values)
    return rule(r.compose, *values)


_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def _certain(
    ufunc: np.ufunc, operands: Sequence[Operand], dtypes: Sequence[np.dtype[Any]]
) -> bool | None:
    """What a comparison with one of Python's numbers says that no integer of the dtype is, or None."""
    if ufunc not in _COMPARISONS or dtypes[0].kind not in "iu":
        return None
    limits = np.iinfo(dtypes[0])
    numbers = [o.given if type(o.given) is int else 0 for o in operands]
    if all(limits.min <= n <= limits.max for n in numbers):
        return None
    return bool(ufunc(*(np.array(n, object) for n in numbers)))


def _broadcast(operands: Sequence[Operand]) -> tuple[int, ...]:
    """The shape of operands together. Raises NumPy's ValueError."""
    shapes = [o.shape for o in operands]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(str(s).replace(" ", "") for s in shapes)
        raise ValueError(f"operands could not be broadcast together with shapes {listed}") from None


def _of_host(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function that irkit has no rule for, as a task of the host: NumPy knows what it returns."""
    from irkit.annotations.ufuncs import ufunc_annotation
    from irkit.frontends.numpy.host_calls import host_call

    odd = set(kwargs) - {"out"}
    if odd:
        raise refused(f"universal function '{ufunc.__name__}' with {', '.join(sorted(odd))}=")
    outs: tuple[Any, ...] = kwargs.get("out", (None,) * ufunc.nout)
    targets = [output_of(out) for out in outs]
    plain = tuple(traced_or_plain(x) for x in inputs)
    if all(t is None for t in targets):
        return host_call(ufunc_annotation(ufunc), plain, {})
    if any(t is None for t in targets) or ufunc.nout > 1:
        raise refused(f"universal function '{ufunc.__name__}' with some of its out=")
    return host_call(ufunc_annotation(ufunc), (*plain, *targets), {})


def traced_or_plain(given: Any) -> Any:
    """Lists as arrays."""
    return operand(given).given if isinstance(given, list | tuple) else given


def _several(ufunc: np.ufunc, rule: Rule, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Functions of two results, as functions of one each."""
    if kwargs:
        raise refused(f"{ufunc.__name__} with {', '.join(sorted(kwargs))}=")
    operands = [operand(x) for x in inputs]
    kinds = _kinds(operands)
    resolve: Any = ufunc.resolve_dtypes
    dtypes = resolve((*kinds, *(None,) * ufunc.nout))
    values = [o.value(t) for o, t in zip(operands, dtypes, strict=False)]
    return tuple(fresh(v, scalar=True) for v in rule(recorder().compose, *values))


def _made(result: Value, operands: Sequence[Operand], order: str) -> TracedArray:
    """A new array of a result: where operands have columns that lie together, it has them too."""
    full = [o.given for o in operands if len(o.shape) == len(result.shape) > 1]
    columns = [a for a in full if a.flags.f_contiguous and not a.flags.c_contiguous]
    rows = [a for a in full if a.flags.c_contiguous and not a.flags.f_contiguous]
    fortran = order == "F" or (order in "KA" and bool(columns) and not rows)
    if not fortran:
        return fresh(result, scalar=True)
    return store(result, empty(result.shape, result.dtype, fortran=True))


def store(result: Value, out: TracedArray, mask: Any = True) -> TracedArray:
    """Write a result to an array, where a mask holds; returns the array.

    Raises ValueError for an array that cannot be written.
    """
    check_writeable(out, "output array is read-only")
    # NumPy's `out=...` asks for an array where it would give a number, and does not say so to its protocol.
    out.spot.scalar = False
    r = recorder()
    result = r.expand(r.cast(result, out.dtype), out.shape)
    if mask is not True:
        chosen = r.expand(operand(mask).value(np.dtype(bool)), out.shape)
        result = r.op(WhereOp, chosen, result, value_of(out))
    r.write(result, out.spot.view)
    return out


def output_of(out: Any) -> TracedArray | None:
    """The array that `out=` names. Raises UnsupportedError for one that the trace does not know."""
    if isinstance(out, tuple):
        (out,) = cast(tuple[Any], out)
    if out is ...:  # an array and no number
        return None
    if out is None or is_traced(out):
        return out
    raise refused("out= is an array that is no argument of the function and was not made in it")


def _kinds(operands: Sequence[Operand]) -> list[Any]:
    """What promotion is told; of Python's numbers alone, what NumPy makes of them."""
    kinds = [o.kind for o in operands]
    return [np.dtype(k) for k in kinds] if all(k in WEAK for k in kinds) else kinds


def resolved(
    ufunc: np.ufunc,
    operands: Sequence[Operand],
    out: TracedArray | None,
    kwargs: Mapping[str, Any],
) -> tuple[np.dtype[Any], ...]:
    """The dtypes in which NumPy computes, operands first. Raises NumPy's own TypeError."""
    kinds = _kinds(operands)
    signature = kwargs.get("signature", kwargs.get("sig"))
    dtype = kwargs.get("dtype")
    if dtype is not None:
        signature = (None,) * ufunc.nin + (np.dtype(dtype),)
    options: dict[str, Any] = {"casting": kwargs.get("casting", "same_kind")}
    if signature is not None:
        options["signature"] = signature
    target = out.dtype if out is not None else None
    resolve: Any = ufunc.resolve_dtypes
    if options["casting"] in ("no", "equiv", "safe") and any(k in WEAK for k in kinds):
        # Python's numbers become what they promote to, and are none that is cast.
        loose = resolve((*kinds, target), **{**options, "casting": "unsafe"})
        kinds = [to if k in WEAK else k for k, to in zip(kinds, loose, strict=False)]
    return resolve((*kinds, target), **options)
