"""`irkit.network`: an ONNX model as a function of its parameters and its inputs, for functions that are
traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from irkit.dialects.functions import function_named
from irkit.dialects.types import tensor_type
from irkit.driver.programs.jitted import JittedFunction, jit
from irkit.errors import UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.module import ImportedModel
from irkit.frontends.numpy.arrays import fresh, value_of
from irkit.frontends.numpy.nested import scoped
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.recorder import tracing
from irkit.frontends.numpy.replay import replay
from irkit.passes.graph.differentiation.function import INPUTS, names_of


class Network:
    """An ONNX model as a function of arrays: `network(parameters, *inputs)`, where `parameters` are arrays
    by the names of initializers. It returns the model's output, or a tuple of several. `parameters` are
    those of the file."""

    def __init__(self, model: Any, parameters: Sequence[str], options: Mapping[str, Any]) -> None:
        if not isinstance(model, str | Path) and type(model).__name__ != "ModelProto":
            raise UnsupportedError(
                f"irkit.network of {type(model).__name__}: expected an onnx.ModelProto or the path of a file"
            )
        if isinstance(parameters, str):
            raise UnsupportedError(
                f"irkit.network: parameters='{parameters}': expected a list of names of initializers"
            )
        from irkit.frontends.onnx.parameters import with_parameters

        self._model, self.parameters = with_parameters(model, list(parameters))
        held = {i.name for i in self._model.graph.initializer}
        self.inputs = tuple(
            i.name
            for i in self._model.graph.input
            if i.name not in self.parameters and i.name not in held
        )
        self._known: dict[tuple[tuple[int, ...], ...], ImportedModel] = {}
        self._jitted = _jitted(self, options)

    def __call__(self, parameters: Mapping[str, Any], *inputs: Any) -> Any:
        """The model's outputs. Raises UnsupportedError for arrays of other names, dtypes or shapes than it
        takes."""
        if not tracing():
            return self._jitted(parameters, *inputs)
        return self._traced(parameters, inputs)

    def _traced(self, parameters: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        if {*parameters} != {*self.parameters} or len(inputs) != len(self.inputs):
            own = f"parameters {sorted(self.parameters)} and {len(self.inputs)} inputs"
            got = f"{sorted(parameters)} and {len(inputs)} inputs"
            raise UnsupportedError(f"a network of {own} is called with {got}")
        given = {**parameters, **dict(zip(self.inputs, inputs, strict=True))}
        arrays = {name: array_of(a) for name, a in given.items()}
        imported = self._imported({n: tuple(arrays[n].shape) for n in self.inputs})
        main = function_named(imported.module, "main")
        assert main is not None
        values = {name: value_of(a) for name, a in arrays.items()}
        names = names_of(main, INPUTS)
        for name, argument in zip(names, main.body.block.args, strict=True):
            if values[name].type != tensor_type(argument):
                raise UnsupportedError(
                    f"network: '{name}' is expected as {argument.type}, got {values[name].type}"
                )
        found = replay(main, imported.weights, [values[n] for n in names])
        results = tuple(fresh(v) for v in found)
        return results[0] if len(results) == 1 else results

    def _imported(self, shapes: Mapping[str, tuple[int, ...]]) -> ImportedModel:
        """The model for inputs of these shapes."""
        key = tuple(shapes[n] for n in self.inputs)
        if key not in self._known:
            self._known[key] = import_model(self._model, "float32", shapes=shapes)
        return self._known[key]


def _jitted(network: Network, options: Mapping[str, Any]) -> JittedFunction:
    def run(parameters: Mapping[str, Any], *inputs: Any) -> Any:
        return network(parameters, *inputs)

    return jit(**options)(run)


def network(model: Any, parameters: Sequence[str] = (), **options: Any) -> Network:
    """An ONNX model (an `onnx.ModelProto` or a path) as a function of arrays: `network(parameters, *inputs)`.

    `parameters` names initializers of the model that become arguments, in a dict by name; the attribute
    `parameters` has what they are in the model. Functions that `irkit.jit` and `irkit.grad` trace may call
    it; elsewhere it is compiled as they are, with `options` of `irkit.jit`. It is imported for each set of
    shapes of its inputs.

    Raises UnsupportedError for names that no initializer has, one name in place of a list, and what the
    import refuses.
    """
    return Network(model, parameters, options)


def loss_of(
    model: Any, parameters: Sequence[str], loss: Callable[..., Any] | None
) -> Callable[..., Any]:
    """A function of (parameters, *inputs, *targets): the loss of the model's outputs and the targets, or,
    without one, the model's output."""
    held = network(model, parameters)
    count = len(held.inputs)

    def run(parameters: Mapping[str, Any], *arrays: Any) -> Any:
        outputs = held(parameters, *arrays[:count])
        if loss is None:
            return outputs
        several = cast("tuple[Any, ...]", outputs if isinstance(outputs, tuple) else (outputs,))
        return scoped(loss)(*several, *arrays[count:])

    return run
