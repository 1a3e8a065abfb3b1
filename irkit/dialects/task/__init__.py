"""The `task` dialect: who runs what, when and where. Words are Rammer's.

Unscheduled, a program is a function of `task.launch`es of `task.roperator`s. Scheduled, it is a
`task.program`: buffers, and appends in an order that each vEU follows.
"""

from xdsl.ir import Dialect

from irkit.dialects.task.alternative import AlternativeAttr
from irkit.dialects.task.buffers import SPACES, BufferOp, ViewOp
from irkit.dialects.task.composite import CompositeOp, RepeatOp, RunOp, WhileOp
from irkit.dialects.task.program import AppendOp, ProgramOp, TokenType
from irkit.dialects.task.roperator import LaunchOp, ROperatorOp, YieldOp, lookup, verify_call
from irkit.dialects.task.vdevice import VDeviceOp

Task = Dialect(
    "task",
    [
        AppendOp,
        BufferOp,
        CompositeOp,
        LaunchOp,
        ProgramOp,
        ROperatorOp,
        RepeatOp,
        RunOp,
        VDeviceOp,
        ViewOp,
        WhileOp,
        YieldOp,
    ],
    [AlternativeAttr, TokenType],
)

__all__ = [
    "SPACES",
    "AlternativeAttr",
    "AppendOp",
    "BufferOp",
    "CompositeOp",
    "LaunchOp",
    "ProgramOp",
    "ROperatorOp",
    "RepeatOp",
    "RunOp",
    "Task",
    "TokenType",
    "VDeviceOp",
    "ViewOp",
    "WhileOp",
    "YieldOp",
    "lookup",
    "verify_call",
]
