"""`irkit.grad` and its kin: derivatives of functions of arrays, as functions of arrays.

Each is a function that `irkit.jit` compiles: what it does when it is traced is to trace the function that it
differentiates as a program of its own, make a function of values of it, `differentiate` that, and record
what comes of it. So they compose: with one another, with `irkit.jit`, and with functions that call them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

from irkit.dialects.types import Tensor
from irkit.driver.programs.derived import Arguments, Derived, Lowered, Parts, new_arrays
from irkit.driver.programs.jacobians import Jacobian
from irkit.driver.programs.jitted import JittedFunction
from irkit.driver.programs.networks import loss_of
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, value_of
from irkit.frontends.numpy.custom import Custom
from irkit.frontends.numpy.nested import Nested, arranged, leaves, nested, scoped, structured
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.records import Value
from irkit.passes.graph.differentiation import Differentiation


class Gradient(Derived):
    """Value and gradients of a function that returns one number, or one and other things."""

    def __init__(
        self,
        function: Callable[..., Any],
        what: str,
        argnums: Arguments,
        *,
        value: bool,
        has_aux: bool,
        allow_unused: bool,
    ) -> None:
        super().__init__(function, what)
        self.argnums, self.value = argnums, value
        self.has_aux, self.allow_unused = has_aux, allow_unused

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        numbers = self.chosen(args, self.argnums)
        named = self.floats([args[n] for n in numbers], numbers)
        moving = list(named.values())
        parts = Parts(args, kwargs, numbers)
        found = nested(parts.call(self.function), [moving, parts.rest], list(named))
        self._check(found)
        lowered = Lowered(found, self.name, self.what)
        wrt = tuple(range(len(moving)))
        ask = Differentiation("reverse", wrt, (0,), seeded=False, allow_unused=self.allow_unused)
        values = lowered.values(ask, [])
        own, made = values[: found.results], values[found.results :]
        gradients = parts.like(new_arrays(made, [a.spot.scalar for a in moving]))
        if isinstance(self.argnums, int | str):
            gradients = gradients[0]
        result = structured(found.structure, own, found.scalars)
        if self.value:
            return result, gradients
        return (gradients, result[1]) if self.has_aux else gradients

    def _check(self, found: Nested) -> None:
        structure = cast(object, found.structure)
        kind = type(structure).__name__
        several = isinstance(structure, tuple | list | dict)
        pair = isinstance(structure, tuple) and len(cast("tuple[Any, ...]", structure)) == 2
        if self.has_aux and not pair:
            raise self.refused("with has_aux a pair is expected, of the loss and other things")
        if several and not self.has_aux:
            hint = "has_aux=True is for a pair of a loss and other things"
            raise self.refused(f"it returns a {kind}, which is no scalar ({hint})")


class Product(Derived):
    """Products of a Jacobian: with cotangents in reverse mode, with tangents in forward mode."""

    def __init__(self, function: Callable[..., Any], what: str, mode: str) -> None:
        super().__init__(function, what)
        self.mode = mode

    def signature(self) -> inspect.Signature:
        """Arguments in a tuple, and what is multiplied."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in ("primals", self.second)])

    @property
    def second(self) -> str:
        """What is multiplied, by its name."""
        return "cotangents" if self.mode == "reverse" else "tangents"

    def _changes(self, changes: Any, like: Any) -> list[TracedArray]:
        """What is multiplied, in the order of `like`. Raises UnsupportedError for another structure."""
        if isinstance(like, tuple) and len(cast("tuple[Any, ...]", like)) == 1 != _length(changes):
            (like,) = cast("tuple[Any, ...]", like)
        elif not isinstance(like, tuple) and _length(changes) == 1:
            (changes,) = changes
        try:
            return [array_of(c) for c in leaves(arranged(changes, like))]
        except ValueError as error:
            raise self.refused(f"{self.second}: {error}") from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        primals, changes = inspect.Signature.bind(self.signature(), *args, **kwargs).args
        single = not isinstance(primals, tuple)
        given = (primals,) if single else cast("tuple[Any, ...]", primals)
        numbers = range(len(given))
        named = self.floats(given, numbers)
        moving = list(named.values())
        parts = Parts(given, {}, numbers)
        found = nested(parts.call(self.function), [moving, parts.rest], list(named))
        lowered = Lowered(found, self.name, self.what)
        wrt, of = tuple(range(len(moving))), tuple(range(found.results))
        ask = Differentiation(self.mode, wrt, of, allow_unused=True)
        like = [(a.shape, a.dtype) for a in moving]
        if self.mode == "reverse":
            like = [(v.shape, v.dtype) for v in self._results(lowered)]
        arrays = self._changes(changes, found.structure if self.mode == "reverse" else primals)
        if [(a.shape, a.dtype) for a in arrays] != like:
            shown = ", ".join(f"{d}{list(s)}" for s, d in like)
            got = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
            raise self.refused(f"{self.second}: expected {shown}, got {got}")
        values = lowered.values(ask, [value_of(a) for a in arrays])
        own, made = values[: found.results], values[found.results :]
        result = structured(found.structure, own, found.scalars)
        if self.mode == "forward":
            return result, structured(found.structure, made, found.scalars)
        back = parts.like(new_arrays(made, [a.spot.scalar for a in moving]))
        return result, back[0] if single else back

    def _results(self, lowered: Lowered) -> list[Value]:
        types = lowered.main.function_type.outputs.data
        return [Value(cast(Tensor, t)) for t in types[: lowered.nested.results]]


def _length(structure: Any) -> int | None:
    """Of a tuple."""
    return len(cast("tuple[Any, ...]", structure)) if isinstance(structure, tuple) else None


class CustomCall(Derived):
    """A call of a function with a gradient of its own."""

    def __init__(self, function: Callable[..., Any], what: str, custom: Custom) -> None:
        super().__init__(function, what)
        self.custom = custom

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise self.refused("named arguments: expected positional ones")
        return self.custom.record(scoped, args)


def _function(
    model: Any, parameters: Sequence[str] | None, loss: Callable[..., Any] | None
) -> Callable[..., Any]:
    """What is differentiated: a function, or the loss of an ONNX model by its parameters."""
    if parameters is not None:
        return loss_of(model, parameters, loss)
    if loss is not None:
        raise UnsupportedError("loss= is for ONNX models with parameters=: a function has its own")
    return model


def grad(
    function: Any,
    argnums: Arguments = 0,
    *,
    has_aux: bool = False,
    allow_unused: bool = False,
    parameters: Sequence[str] | None = None,
    loss: Callable[..., Any] | None = None,
    **options: Any,
) -> JittedFunction:
    """The gradient of a function of arrays that returns one number: a function of the same arguments.

    `argnums`: which arguments it is of, by number or name (one, or several: the result is then a tuple);
    each may be an array of floats or a tuple, list or dict of such, and its gradients are in the same
    structure. With `has_aux` the function returns a pair of the number and other things, and so does its
    gradient. `allow_unused`: an argument that the number does not hang on has a gradient of zeros; else it
    is refused. `options`: those of `irkit.jit`.

    Of an ONNX model (an `onnx.ModelProto` or a path), with `parameters`, names of its initializers: the
    function is then one of (parameters, *inputs, *targets), `parameters` a dict of arrays by name, and what
    is differentiated is `loss(*outputs, *targets)`, or without `loss` the model's output.

    What the function writes is its own: arguments stay as they are. Where there is no derivative PyTorch's
    choice is made (`relu` and `abs` at 0: 0). Calls raise UnsupportedError for a result that is no number,
    an argument of integers, an argument that does not reach the result, and what `irkit.jit` or
    `differentiate` refuse.
    """
    derived = Gradient(
        _function(function, parameters, loss),
        "irkit.grad",
        argnums,
        value=False,
        has_aux=has_aux,
        allow_unused=allow_unused,
    )
    return derived.jitted(**options)


def value_and_grad(
    function: Any,
    argnums: Arguments = 0,
    *,
    has_aux: bool = False,
    allow_unused: bool = False,
    parameters: Sequence[str] | None = None,
    loss: Callable[..., Any] | None = None,
    **options: Any,
) -> JittedFunction:
    """As `grad`, and the number itself: a function that returns (value, gradient)."""
    derived = Gradient(
        _function(function, parameters, loss),
        "irkit.value_and_grad",
        argnums,
        value=True,
        has_aux=has_aux,
        allow_unused=allow_unused,
    )
    return derived.jitted(**options)


def vjp(function: Callable[..., Any], **options: Any) -> JittedFunction:
    """The product of cotangents with a function's Jacobian: a function of (primals, cotangents).

    `primals` are the arguments, a tuple, or one array; `cotangents` are in the structure of what the
    function returns. It returns (results, gradients), the latter in the structure of `primals`; zeros where
    nothing hangs on one. Dicts go by their keys. Raises UnsupportedError for cotangents of another structure,
    shape or dtype.
    """
    return Product(function, "irkit.vjp", "reverse").jitted(**options)


def jvp(function: Callable[..., Any], **options: Any) -> JittedFunction:
    """The product of a function's Jacobian with tangents: a function of (primals, tangents), both in one
    structure, a tuple of arguments or one array. It returns (results, tangents of the results). Of a
    gradient it is the product of a Hessian with a vector: `irkit.jvp(irkit.grad(f))(x, v)[1]`. Dicts go by
    their keys. Raises UnsupportedError for tangents of another structure, shape or dtype."""
    return Product(function, "irkit.jvp", "forward").jitted(**options)


def jacobian(
    function: Callable[..., Any], argnums: int | str = 0, *, mode: str = "auto", **options: Any
) -> JittedFunction:
    """All partial derivatives of a function that returns one array, by one array: a function of the same
    arguments that returns an array of the result's shape followed by the argument's.

    A loop over columns, by `jvp` ("forward"), or over rows, by `vjp` ("reverse"); "auto" takes what is less.
    """
    if mode not in ("auto", "forward", "reverse"):
        raise UnsupportedError(f"mode '{mode}': expected auto, forward, reverse")
    return Jacobian(function, "irkit.jacobian", argnums, mode).jitted(**options)


def hessian(function: Callable[..., Any], argnums: int | str = 0, **options: Any) -> JittedFunction:
    """All second derivatives of a function that returns one number, by one array: forward over reverse mode.
    A function of the same arguments that returns an array of the argument's shape twice."""
    gradient = grad(function, argnums, allow_unused=True)
    return Jacobian(gradient, "irkit.hessian", argnums, "forward").jitted(**options)


def custom_gradient(
    function: Callable[..., Any],
    *,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    **options: Any,
) -> JittedFunction:
    """A function of arrays, positional arguments, that says itself how it is differentiated.

    `vjp(arguments, result, cotangent)` returns a tuple of a gradient for each argument, None for one that
    has none; `jvp(arguments, tangents, result)` the tangent of the result. Both are functions of arrays like
    any other, and are themselves differentiated where a second derivative is asked for. A function that
    returns a tuple has a tuple for `result`, `cotangent` and tangent. Where what is asked for is not given,
    UnsupportedError is raised.
    """
    if vjp is None and jvp is None:
        raise UnsupportedError("irkit.custom_gradient: expected vjp, jvp, or both")
    for part, given in (("vjp", vjp), ("jvp", jvp)):
        if given is not None and not callable(given):
            kind = type(given).__name__
            raise UnsupportedError(f"irkit.custom_gradient: {part} of {kind}: expected a function")
    return CustomCall(function, "irkit.custom_gradient", Custom(function, vjp, jvp)).jitted(
        **options
    )
