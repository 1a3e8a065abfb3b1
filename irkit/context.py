"""The context that passes run in: xDSL's, plus the weights that the module refers to."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from irkit.weights import WeightStore


@dataclass
class IrkitContext(Context):
    """Carries the weight store beside the registered dialects."""

    weights: WeightStore = field(default_factory=WeightStore)


class NoWeightsError(PassFailedException, SystemExit):
    """A pass that reads weights runs under a context that has none.

    xdsl-opt shows a failed pass as a traceback; as a SystemExit too, this one is shown as its message,
    with exit code 1.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = message


def weights_of(ctx: Context) -> WeightStore:
    """The weights of `ctx`; passes that read or make weights call this.

    Raises NoWeightsError under a plain xDSL context.
    """
    if isinstance(ctx, IrkitContext):
        return ctx.weights
    raise NoWeightsError(
        "error: this pass reads weights, which xdsl-opt has none of: run it with irkit-opt"
    )


def resource_name(value: SSAValue | Operation) -> str | None:
    """The weight's name if `value` is `arith.constant dense_resource<name>`, else None."""
    op = value.owner if isinstance(value, SSAValue) else value
    if isinstance(op, ConstantOp) and isinstance(op.value, builtin.DenseResourceAttr):
        return op.value.resource_handle.data
    return None
