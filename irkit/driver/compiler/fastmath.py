"""What `irkit.compile(fastmath=...)` says of a model's arithmetic, on its function."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag

from irkit.errors import UnsupportedError
from irkit.passes.tensor.propagate_fastmath import FASTMATH

ACCEPTED = {FastMathFlag.APPROX_FUNC.value: FastMathFlag.APPROX_FUNC}


def check_fastmath(names: Collection[str] | None) -> None:
    """Raises UnsupportedError for a flag that irkit knows nothing to do with."""
    given = [names] if isinstance(names, str) else sorted(names or ())
    if isinstance(names, str) or any(name not in ACCEPTED for name in given):
        raise UnsupportedError(
            f"fastmath={names!r}: expected a collection of flags among {', '.join(ACCEPTED)}"
        )


def set_fastmath(module: ModuleOp, names: Collection[str] | None) -> None:
    """Replace what the functions of `module` say by these flags; None leaves it."""
    if names is None:
        return
    flags = FastMathFlagsAttr([ACCEPTED[name] for name in names])
    for op in module.ops:
        if isinstance(op, FuncOp):
            op.attributes[FASTMATH] = flags
