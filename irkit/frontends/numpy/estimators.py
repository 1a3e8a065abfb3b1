"""Methods of fitted estimators as part of a traced function: the graph that their front end makes of them.

What a method returns for rows of the shape at hand is replayed into the trace, and compiled with what stands
around it. The estimator is as it was when the function was traced: a digest of its state guards the program.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from irkit.dialects.functions import function_named
from irkit.dialects.graph import (
    AbsOp,
    CompareOp,
    ConcatOp,
    GatherOp,
    IsNanOp,
    LogOp,
    OrOp,
    ReduceOp,
)
from irkit.dialects.graph.batch.size import specialise
from irkit.dialects.symbols import symbols
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, IrkitError
from irkit.frontends import import_model
from irkit.frontends.module import ImportedModel
from irkit.frontends.numpy.arrays import TracedArray, fresh, is_traced, value_of
from irkit.frontends.numpy.attempts import Attempt
from irkit.frontends.numpy.objects import is_booster
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.recorder import Recorder, recorder
from irkit.frontends.numpy.records import Call, Check, For, Record, Value, While
from irkit.frontends.numpy.replay import replay
from irkit.model_info import ModelInfo
from irkit.weights import Array

READING = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
)
"""Methods that read an estimator and their argument, write neither, and return an array."""


LIBRARIES = ("sklearn", "lightgbm", "xgboost")
"""Packages of estimators, none of whose methods is traced as it stands: they keep what they are given."""


class OpaqueError(Exception):
    """Why a method is called by the host. No error of the user's."""


def part_of_trace(method: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TracedArray:
    """What a method of a fitted estimator returns, in the trace at hand. Raises OpaqueError, and leaves the
    trace as it was, where its front end refuses it."""
    r, model, name = recorder(), method.__self__, method.__name__
    if r.not_compiled:
        raise OpaqueError(r.not_compiled)
    x = _rows(model, args, kwargs)
    state = state_of(model)
    if not state:
        raise OpaqueError("its state cannot be compared from call to call")
    made, real = _imported(model, name, x), _returned(method, x)
    attempt, why, found = Attempt(r), "", None
    with attempt:
        found = _replayed(made, name, value_of(x))
        if (real.dtype, real.shape[1:]) != (found.dtype, found.shape[1:]):
            why = f"it returns {real.dtype}, which irkit computes as {found.dtype}"
            raise OpaqueError(why)
    if found is None or attempt.why is not None:
        raise OpaqueError(why or attempt.why or "")
    if r.capture is not None and id(model) not in r.guarded:
        r.guarded.add(id(model))
        r.capture(type(model).__name__, state, lambda: state_of(model))
    r.compiled.append(f"{type(model).__name__}.{name} at {user_place()}")
    return fresh(found)


def state_of(model: Any) -> str:
    """A digest of what the methods read, and of how scikit-learn is set; empty where it has none."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        text = pickle.dumps(model, 5, buffer_callback=buffers.append)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return ""
    digest = hashlib.sha256(text)
    for buffer in buffers:
        digest.update(buffer.raw())
    digest.update(repr(sorted(_settings().items())).encode())
    return f"{type(model).__qualname__} {digest.hexdigest()}"


def _settings() -> dict[str, Any]:
    try:
        import sklearn
    except ImportError:  # LightGBM and XGBoost have models that need none
        return {}
    return cast("dict[str, Any]", cast(Any, sklearn).get_config())


def may_refit(records: Sequence[Record], is_model: Any) -> Call | None:
    """A call of the host, of which it is not known that it leaves estimators as they are."""
    for call in _calls(records):
        known = call.task.annotation
        owner = getattr(known.function, "__self__", None)
        reads = getattr(known.function, "__name__", "") in READING
        if known.writes is None or known.callback or (is_model(owner) and not reads):
            return call
    return None


def _calls(records: Sequence[Record]) -> Iterator[Call]:
    for record in records:
        if isinstance(record, Call):
            yield record
        elif isinstance(record, For | While):
            yield from _calls(record.body)


# What it is called with


def _rows(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TracedArray:
    """The one argument: rows×features that are not empty."""
    if len(args) + len(kwargs) != 1 or (kwargs and next(iter(kwargs)) != "X"):
        raise OpaqueError("it is called with more than rows")
    given = args[0] if args else kwargs["X"]
    x = array_of(given) if is_traced(given) else None
    if x is None or x.ndim != 2 or not x.size:
        raise OpaqueError("its argument is no array of rows and features")
    if x.dtype.kind not in "biu" and x.dtype.name not in ("float32", "float64"):
        raise OpaqueError(f"rows of {x.dtype}")
    if type(model).__module__.partition(".")[0] not in LIBRARIES:
        raise OpaqueError(
            f"{type(model).__name__} is none of scikit-learn's own estimators, nor of LightGBM's or XGBoost's"
        )
    if _settings().get("assume_finite"):
        raise OpaqueError("scikit-learn is set to assume_finite")
    given_params: dict[str, Any] = {} if is_booster(model) else model.get_params()
    if any(n.rpartition("__")[2] == "copy" and v is False for n, v in given_params.items()):
        raise OpaqueError("copy=False: it may write its argument")
    return x


@dataclass
class _Imported:
    """A model for rows of one number and dtype. `wanted`: names of the outputs that the method needs."""

    main: FuncOp
    model: ImportedModel
    wanted: list[str]
    dtype: np.dtype[Any]


def _imported(model: Any, name: str, x: TracedArray) -> _Imported:
    kind = "float32" if x.dtype == np.float32 else "float64"
    try:
        found = import_model(model, kind)
    except IrkitError as error:
        first, *rest = str(error).splitlines()
        raise OpaqueError(" ".join([first, *(s.strip(" -") for s in rest[:1])])) from None
    info = found.info
    if reason := _why_not(info, name, x):
        raise OpaqueError(reason)
    output = info.methods[name]
    wanted = [output] if isinstance(output, str) else list(output)
    main = function_named(found.module.clone(), "main")
    assert main is not None
    for symbol in symbols(main):
        specialise(main, x.shape[0], symbol)
    _trim(main, [info.outputs.index(n) for n in (*wanted, *info.checks)])
    given = tensor_type(main.body.block.args[0])
    return _Imported(main, found, wanted, numpy_dtype(given.element_type))


def _why_not(info: ModelInfo, name: str, x: TracedArray) -> str:
    """What of a model has no form in a trace."""
    if name not in info.methods:
        return f"irkit has no {name} of it"
    if info.counts_documents or info.words:
        return "it takes text"
    if info.inputs != ("x",):
        return "it takes labels"
    if info.integers and x.dtype.kind in "biu":
        return f"it rounds rows of {x.dtype} first"
    if info.limits:
        return "it refuses rows by limits of their columns"
    if info.by_name:
        return "it picks columns by name, which an array has not"
    several = not isinstance(info.methods[name], str)
    if several and name != "predict":
        return "it returns a list"
    labels = (
        [np.asarray(c) for c in (info.classes or ())] if several else [np.asarray(info.classes)]
    )
    if (
        name == "predict"
        and info.classes is not None
        and any(a.dtype.kind not in "biuf" for a in labels)
    ):
        return "its class labels are no numbers"
    return ""


def _trim(main: FuncOp, outputs: Sequence[int]) -> None:
    """Return these outputs alone, and compute no others."""
    block = main.body.block
    end = block.last_op
    assert isinstance(end, ReturnOp)
    Rewriter.replace_op(end, ReturnOp(*(end.operands[n] for n in outputs)))
    for op in reversed(list(block.ops)):
        if not op.has_trait(IsTerminator) and not any(r.first_use for r in op.results):
            Rewriter.erase_op(op)
    main.update_function_type()


# What it returns


def _replayed(made: _Imported, name: str, x: Value) -> Value:
    """The result of the method; what the model refuses is checked."""
    r, info = recorder(), made.model.info
    x = r.cast(x, made.dtype)
    _check_values(r, info, x)
    found = replay(made.main, made.model.weights, [x])
    count = len(made.wanted)
    for message, rows in zip(info.checks.values(), found[count:], strict=True):
        _require(r, r.cast(rows, np.dtype(bool)), message)
    results = found[:count]
    if name == "predict_log_proba" and info.methods.get("predict_proba") == info.methods[name]:
        results = [r.op(LogOp, v) for v in results]
    if name == "predict" and info.classes is not None:
        labels = info.classes if count > 1 else [info.classes]
        kind = np.dtype(info.label_dtype) if info.label_dtype else None
        results = [
            r.op(GatherOp, r.constant(np.asarray(c, kind)), v, axis=0)
            for c, v in zip(labels, results, strict=True)
        ]
    if count == 1:
        return results[0]
    columns = [r.reshape(v, (*v.shape, 1)) for v in results]
    return r.op(ConcatOp, *columns, axis=1)


def _check_values(r: Recorder, info: ModelInfo, x: Value) -> None:
    """What scikit-learn raises ValueError for, and what overflows in the model."""
    if info.allow_nan and info.allow_infinity and info.largest is None:
        return
    finite = float(np.finfo(x.dtype).max)
    most = finite if info.largest is None else min(info.largest, finite)
    limit = np.array(most, x.dtype)
    if limit > most:
        limit = np.nextafter(limit, np.array(0, x.dtype))
    sizes = r.op(AbsOp, x)
    held = r.op(CompareOp, sizes, r.constant(np.asarray(limit)), predicate="le")
    if info.allow_infinity:
        infinite = r.constant(np.array(np.inf, x.dtype))
        held = r.op(OrOp, held, r.op(CompareOp, sizes, infinite, predicate="eq"))
    if info.allow_nan:
        held = r.op(OrOp, held, r.op(IsNanOp, x))
    odd = [] if info.allow_nan else ["NaN"]
    odd += [] if info.allow_infinity else ["infinity"]
    odd += [] if info.largest is None else [f"a value larger than {info.largest:g}"]
    _require(r, held, f"rows with {' or '.join(odd)}, which {info.source} does not accept")


def _require(r: Recorder, held: Value, message: str) -> None:
    """All of `held` must be."""
    whole = r.cast(held, np.dtype(np.uint8))
    least = r.op(ReduceOp, whole, kind="min", axes=list(range(len(whole.shape))), keepdims=False)
    check = Check(user_place(), message, InvalidInputError)
    r.require(check, r.cast(least, np.dtype(bool)))


def _returned(method: Any, x: TracedArray) -> Array:
    """What the method itself returns of a row: it may be a frame, a sparse matrix, of another dtype."""
    row: Array = np.zeros((1, x.shape[1]), x.dtype)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            real = method(row)
    except ValueError:
        raise OpaqueError("it refuses a row of zeros, by which its result would be known") from None
    if type(real) is not np.ndarray:
        raise OpaqueError(f"it returns a {type(cast(object, real)).__name__}")
    if row.any():
        raise OpaqueError("it writes its argument")
    return real
