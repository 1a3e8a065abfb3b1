"""Bind an rOperator to an rKernel: everything that its template needs, as text."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from irkit.dialects.roperator_root import Root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import ints
from irkit.errors import UnsupportedError
from irkit.rkernels import families
from irkit.rkernels.binding.binder import Binder, Binding
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.templates import placeholders
from irkit.rkernels.work import Part

# Element types that `irkit.runtime.intrinsics.cpu` has arrays on the stack for.
_STACKS = ("float32", "float64", "int32", "int64")


def parameters_of(op: ROperatorOp) -> dict[str, int]:
    """Compile-time parameters of an rOperator's rKernel. Raises UnsupportedError if one is no integer."""
    found: dict[str, int] = {}
    given: Mapping[str, Attribute] = op.parameters.data if op.parameters is not None else {}
    for name, value in given.items():
        if not isinstance(value, IntegerAttr):
            raise UnsupportedError(f"parameter {name}: expected an integer, got {value}")
        found[name] = value.value.data
    return found


def bind(op: ROperatorOp, root: Root, rkernel: RKernel, threads: int) -> Binding:
    """What the placeholders of `rkernel`'s template become for `op`, in blocks of `threads`.

    A pure function of its arguments. Raises UnsupportedError for what the family cannot express, and for a
    placeholder that has no meaning here.
    """
    binder = Binder(op, root, rkernel.target)
    families.find(rkernel.family).bind(binder)
    binding, parameters = binder.binding, parameters_of(op)
    binding.scratch_bytes = op.scratch_bytes
    binding.resident = op.residents is not None
    binding.aligned = rkernel.aligns and op.vector_bytes is not None
    of_target = _of_target(op, rkernel, binding, threads)
    # A parameter of such a name would be another number than the rKernel says.
    assert not of_target.keys() & parameters.keys(), of_target.keys() & parameters.keys()
    binding.names |= {name: str(value) for name, value in parameters.items()} | of_target
    _maps(rkernel, binding)
    if binding.batch:
        binding.rows_at_once = rkernel.rows_at_once
    if rkernel.spreads is not None and not binding.batch:
        part = Part(root, ints(op.grid), threads)
        binding.spread = part.rounds(rkernel.spreads(part), threads)
        binding.side_by_side = rkernel.side_by_side if binding.spread > 1 else 1
    if rkernel.clustered and parameters["BLOCKS"] > 1:
        binding.spread, binding.clustered = parameters["BLOCKS"], True
    binding.functions += [t for n, t in binding.parts.items() if n in placeholders(rkernel)]
    if missing := sorted(placeholders(rkernel) - set(binding.names)):
        raise UnsupportedError(
            f"placeholder {', '.join(missing)} in rKernel template '{rkernel.function}'"
        )
    return binding


def _maps(rkernel: RKernel, binding: Binding) -> None:
    """Tensor maps come behind the operands, as pointers that are only handed on."""
    named = {placeholder: f"map{number}" for number, placeholder in enumerate(rkernel.maps)}
    binding.pointers += named.values()
    binding.pointer_types += ["uint64"] * len(named)
    binding.names |= {**named, "MAPS": ", ".join(named.values())}


def _of_target(op: ROperatorOp, rkernel: RKernel, binding: Binding, threads: int) -> dict[str, str]:
    """Placeholders that only one target has."""
    if rkernel.target == "cuda":
        vector = int(op.vector_bytes is not None)
        return {
            "THREAD": "thread_index()", "THREADS": str(threads), "VECTOR": str(vector), "RESIDENT": "0",
            "RANK": "0", "RANKS": "1", "READS_AHEAD": "1",
        }  # fmt: skip
    element = binding.names["FLOAT"]
    stack = {"STACK": f"stack_{element}"} if element in _STACKS else {}
    return {
        **stack, "STACK_INT": "stack_int32", "STACK_BYTES": "stack_uint8", "POINTER": f"{element}p",
    }  # fmt: skip
