"""What the ops of `graph` and `te` share: value semantics, and result types inferred from operands.

An op states its typing rule once, as `infer`. The verifier compares the result with it, and
`make` builds an op from operands and properties with its result types filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.element_sets import ALL, Elements
from irkit.dialects.types import DYNAMIC, Tensor, tensor, tensor_type

Props = Mapping[str, Attribute]


class InferredOp(IRDLOperation):
    """A pure op on tensors whose result types follow from its operands and properties."""

    CONTRACTS: ClassVar[bool] = False
    """Whether it sums products, and so may say their precision (`irkit/dialects/precision.py`)."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (ALL,)
    """Element types that it takes, one entry per operand; the last one is also for all that follow."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        """Result types of operands whose elements are among `ELEMENTS`.

        Raises VerifyException, naming expected and actual, on bad operands.
        """
        raise NotImplementedError(cls.name)

    @classmethod
    def inferred(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        """Result types. Raises VerifyException like `infer`, and on elements without a meaning."""
        for number, t in enumerate(operands):
            known = cls.ELEMENTS[min(number, len(cls.ELEMENTS) - 1)]
            if t.element_type not in known:
                raise fail(cls, f"elements of {known.text}", t)
        return cls.infer(operands, props)

    @classmethod
    def make(cls, operands: Sequence[SSAValue], props: Props | None = None) -> Self:
        """Build the op with inferred result types. Raises VerifyException like `infer`."""
        props = dict(props or {})
        types = cls.inferred([tensor_type(v) for v in operands], props)
        return cls.create(operands=operands, result_types=types, properties=props)

    def verify_(self) -> None:
        expected = self.inferred([tensor_type(v) for v in self.operands], self.properties)
        for i, (want, result) in enumerate(zip(expected, self.results, strict=True)):
            if want != result.type:
                which = f"result {i}" if len(expected) > 1 else "result"
                raise VerifyException(
                    f"'{self.name}' expects {which} of type {want}, got {result.type}"
                )


def fail(op: type[InferredOp], expected: str, actual: object) -> VerifyException:
    """`'dialect.x' expects <expected>, got <actual>`; a dynamic extent is `?`, as in a type."""
    text = f"'{op.name}' expects {expected}, got {actual}"
    return VerifyException(text.replace(str(DYNAMIC), "?"))


def broadcast_shapes(op: type[InferredOp], operands: Sequence[Tensor]) -> list[int]:
    """NumPy's broadcasting; a dynamic dimension meets itself or 1."""
    rank = max(t.get_num_dims() for t in operands)
    padded = [[1] * (rank - t.get_num_dims()) + list(t.get_shape()) for t in operands]
    shape: list[int] = []
    for sizes in zip(*padded, strict=True):
        distinct = sorted({s for s in sizes if s != 1})
        if len(distinct) > 1:
            raise fail(op, "operands that broadcast together", " and ".join(map(str, operands)))
        shape.append(distinct[0] if distinct else 1)
    return shape


def same_element(op: type[InferredOp], operands: Sequence[Tensor]) -> Attribute:
    """The one element type of all operands."""
    element = operands[0].element_type
    for t in operands[1:]:
        if t.element_type != element:
            raise fail(op, f"operands of one element type ({element})", t.element_type)
    return element


def check_rank(op: type[InferredOp], what: str, t: Tensor, rank: int) -> None:
    """`what` must have `rank` dimensions."""
    if t.get_num_dims() != rank:
        raise fail(op, f"{what} of rank {rank}", t)


def check_axis(op: type[InferredOp], axis: int, t: Tensor) -> int:
    """An axis in [0, rank)."""
    if not 0 <= axis < t.get_num_dims():
        raise fail(op, f"0 <= axis < {t.get_num_dims()} (rank of {t})", f"axis = {axis}")
    return axis


def with_shape(t: Tensor, shape: Sequence[int]) -> Tensor:
    """`t` with another shape."""
    return tensor(t.element_type, shape)
