"""What `irkit.compile(fastmath=...)` says of a model's arithmetic, on its function."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag

from irkit.errors import UnsupportedError
from irkit.passes.tensor.propagate_fastmath import FASTMATH

ACCEPTED = {FastMathFlag.APPROX_FUNC.value: FastMathFlag.APPROX_FUNC}


def check_fastmath(names: Any) -> None:
    """Raises UnsupportedError for a flag that irkit knows nothing to do with."""
    if names is None:
        return
    known = isinstance(names, Collection) and {*map(str, cast(Any, names))} <= ACCEPTED.keys()
    if isinstance(names, str) or not known:
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
