"""The context that a module is read into."""

from __future__ import annotations

from irkit.context import IrkitContext
from irkit.driver.files.model_files import read_weights
from irkit.driver.registry import register_dialects


def make_context(path: str, allow_unregistered: bool = False) -> IrkitContext:
    """A fresh context that knows every dialect, with the weights beside `path`."""
    ctx = IrkitContext(allow_unregistered=allow_unregistered)
    ctx.weights = read_weights(path)
    register_dialects(ctx)
    return ctx
