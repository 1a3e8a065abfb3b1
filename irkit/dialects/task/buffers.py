"""Where things are: buffers, and views into them."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import (
    Attribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.task.figures import check_figures

SPACES = ("arena", "rows", "input", "output", "constant", "state")
# Which facts the buffers of which spaces have; an offset is there once memory is planned.
_FACTS = {
    "port": ("input", "output", "state"),
    "source": ("constant",),
    "offset": ("arena", "rows", "constant"),
}


@irdl_op_definition
class BufferOp(IRDLOperation):
    """Bytes that hold a tensor during a run.

    `space` is `arena`, `rows` or `constant` (planned by `plan-memory`: `offset` in bytes, or in bytes
    per row of the batch for `rows`), or `input` or `output` (number `port` of the function), or `state`:
    pair `port` of the function's state, which it finds as the argument and leaves as the result.
    `source` names the weight that a constant holds.

    ```mlir
    task.program @main_schedule of @main attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
      %w = task.buffer {space = "constant", source = "w"} : tensor<4xf32>
      %h = task.buffer {space = "arena", offset = 256 : i64} : tensor<4xf32>
    }
    ```
    """

    name = "task.buffer"
    space = prop_def(StringAttr)
    port = opt_prop_def(IntegerAttr[IntegerType])
    offset = opt_prop_def(IntegerAttr[IntegerType])
    source = opt_prop_def(StringAttr)
    result = result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(
        self,
        space: str,
        type: Attribute,
        *,
        port: int | None = None,
        offset: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(
            result_types=[type],
            properties={
                "space": StringAttr(space),
                "port": None if port is None else IntegerAttr(port, i64),
                "offset": None if offset is None else IntegerAttr(offset, i64),
                "source": None if source is None else StringAttr(source),
            },
        )

    def verify_(self) -> None:
        space = self.space.data
        if space not in SPACES:
            raise VerifyException(
                f"'task.buffer' expects a space among {', '.join(SPACES)}, got '{space}'"
            )
        for name, spaces in _FACTS.items():
            given = getattr(self, name) is not None
            if given and space not in spaces:
                raise VerifyException(f"'task.buffer' in space '{space}' has no {name}")
            if not given and space in spaces and name != "offset":
                raise VerifyException(
                    f"'task.buffer' in space '{space}' expects a {name}, got none"
                )
        check_figures(self, {"port": 0, "offset": 0})


@irdl_op_definition
class ViewOp(IRDLOperation):
    """Some bytes of another buffer under a type of their own, `offset` bytes into it (bytes per row
    of the batch for buffers whose leading dimension is the batch).

    ```mlir
    task.program @main_schedule of @main attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<4x2xf32>
      %r = task.view %x {offset = 8 : i64} : tensor<4x2xf32> -> tensor<2xf32>
    }
    ```
    """

    name = "task.view"
    source = operand_def(TensorType)
    offset = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, offset: int, type: Attribute) -> None:
        super().__init__(
            operands=[source], result_types=[type], properties={"offset": IntegerAttr(offset, i64)}
        )

    def verify_(self) -> None:
        check_figures(self, {"offset": 0})
