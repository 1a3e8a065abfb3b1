"""What a tensor-level op says of itself, to every walker over bodies.

Upstream ops (`linalg`, `tensor`, `arith`) cannot have traits of irkit's, so an op's model is an object
beside it, found by the op's class: MLIR's external models of op interfaces. `registry.py` has them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array, WeightStore

Interval = tuple[int, int]
Box = tuple[Interval, ...]
"""A half-open interval per dimension."""

Index = tuple[str, ...]
"""Names or numbers, one per dimension."""

AnyOp = TypeVar("AnyOp", bound=Operation)


class Kind(Enum):
    """How an op is computed."""

    HEAVY = auto()
    """By an rKernel of its own: it is the root of an rOperator."""
    LIGHT = auto()
    """Where it is read: each of its elements is an expression of other elements."""
    VIEW = auto()
    """Not at all: it names bytes between launches, and moves none."""
    FREE = auto()
    """In every body that needs it: it costs nothing, and is copied there."""
    STORED = auto()
    """Before the program: its bytes are among the weights."""


@dataclass(frozen=True)
class Extents:
    """Sizes in boxes: the batch is counted in `shares`. `known` is what models found of ops that stay as they
    are: boxes of one body are asked for by one rTask after another."""

    shares: int
    known: dict[Operation, Any] = field(
        default_factory=dict[Operation, Any], compare=False, repr=False
    )

    def interval(self, size: int) -> Interval:
        """All of a dimension."""
        return 0, self.shares if size == DYNAMIC else size

    def whole(self, value: SSAValue) -> Box:
        """All of a tensor."""
        return tuple(self.interval(s) for s in tensor_type(value).get_shape())


class ElementText(Protocol):
    """Who prints the statements that compute elements; `irkit.rkernels.binding.elements` has it."""

    def element(self, value: SSAValue, index: Index) -> str:
        """Name of a variable that holds `value[index]`."""
        ...

    def remember(self, value: SSAValue, index: Index, text: str) -> None:
        """`value[index]` is known to be `text`."""
        ...

    def line(self, text: str) -> None:
        """Append a statement."""
        ...

    def name(self, expression: str) -> str:
        """Bind an expression to a fresh name."""
        ...

    def quotient(self, index: str, by: int) -> str:
        """A name for an index over a number that divides it."""
        ...

    def number(self, value: float | int, element: Attribute) -> str:
        """A literal of an element type."""
        ...

    def variable(self, start: str, element: Attribute) -> str:
        """A fresh name of an element type that branches assign to."""
        ...

    def beside(self, index: Index, dims: Collection[int]) -> Sequence[Index]:
        """The indices, `index` among them, of elements that are needed together and lie at one place along
        `dims`: what hangs on that place is the same for all of them."""
        ...

    def branch(self, together: bool = False) -> ElementText:
        """A printer for an indented block: what it binds is not known outside. `together`: all elements that
        are needed together take it, or none."""
        ...

    def scalar(self, value: SSAValue) -> str:
        """A scalar that is a function of constants."""
        ...

    def reshaped(self, index: Index, shape: Sequence[int], to: Sequence[int]) -> Index:
        """The index in a tensor of shape `to` of what is at `index` in one of shape `shape`."""
        ...

    def yielded(self, op: linalg.GenericOp, loops: Index) -> list[str]:
        """What the body of an all-parallel generic yields at a point of its loops."""
        ...


class Interpreter(Protocol):
    """Who computes with arrays; `irkit.interp.tensor` has it."""

    @property
    def weights(self) -> WeightStore:
        """Bytes of the constants."""
        ...

    def scalar(self, op: Operation, operands: list[Array]) -> Array:
        """The result of an `arith` or `math` op on arrays that broadcast together."""
        ...


class TensorOpModel(ABC, Generic[AnyOp]):
    """One op of the tensor level, for all who walk over bodies.

    A derived class says of which kind the op is and what it computes; a light one also how an element of it
    is printed, a heavy one of which family of roots it is. What a part of it reads is best said too: all of
    every operand is always right, and keeps launches waiting that need not. `irkit.extending.add_tensor_op`
    makes one known.
    """

    family = ""
    """The family of the root that a heavy op is."""

    cheap = False
    """Whether an element costs no more than a comparison, so that it may be computed for each read."""

    names_operand = False
    """Whether its elements are those of its first operand, so that who reads it reads that in memory."""

    @abstractmethod
    def kind(self, op: AnyOp) -> Kind:
        """How `op` is computed."""

    @abstractmethod
    def evaluate(
        self, op: AnyOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        """The results of `op` on arrays of its operands, which stay as they are."""

    def inputs(self, op: AnyOp) -> Sequence[SSAValue]:
        """The operands that it computes from; a destination is none."""
        return op.operands

    # Boxes

    def operand_boxes(
        self, op: AnyOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        """What is read of each operand (None: nothing) for what is `needed` of each result.

        One result at least is needed. A box may be larger than what is read, never smaller.
        """
        return [extents.whole(v) if isinstance(v.type, TensorType) else None for v in op.operands]

    def result_boxes(
        self, op: AnyOp, known: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        """What can be computed of each result from the part of each operand that is `known` (None: it does
        not hang on the root). None where nothing is said: such an op cannot stand behind a root."""
        return [None] * len(op.results)

    # Elements

    def element(self, op: AnyOp, printer: ElementText, result: SSAValue, index: Index) -> str:
        """Name of a variable that holds `result[index]`. Raises UnsupportedError where there is none."""
        raise UnsupportedError(f"emission of '{op.name}' inside an rOperator")

    def same_bytes(self, op: AnyOp) -> SSAValue | None:
        """The operand that the result is, element by element in order of memory; None if it is none."""
        return None

    # What stands beside it in an rOperator

    def why_no_prologue(self, op: AnyOp, producer: Operation, cheap: bool) -> str | None:
        """Why `producer`'s elements, `cheap` or not, cannot be computed where `op` reads them; None if
        they can."""
        if self.kind(op) is Kind.HEAVY:
            return f"'{op.name}' reads its operands by pointer"
        return None

    def why_no_epilogue(self, op: AnyOp, producer: Operation) -> str | None:
        """Why `op` cannot be computed where `producer`'s elements are made; None if it can."""
        return f"'{op.name}' is no elementwise op"

    # Roots

    def root(self, heavy: Sequence[Operation]) -> Root:
        """The root that a body's heavy ops are, the last of which is of this model.

        Raises ValueError if they do not form one root.
        """
        if len(heavy) != 1:
            raise ValueError("an rOperator has one root")
        (op,) = heavy
        return Root(self.family, op, tuple(tensor_type(op.results[0]).get_shape()))

    def root_box(self, root: Root, cell: Sequence[Interval]) -> Box:
        """The part of the root's value that is at `cell` of its parallel dimensions."""
        return tuple(cell)
