"""`for` statements over a range that data may end: those of which the first statement is `if test: break`."""

from __future__ import annotations

import ast
from typing import cast


def is_left(node: ast.AST) -> bool:
    """Whether it is a `for` statement of which the first statement is `if test: break`."""
    if not isinstance(node, ast.For) or node.orelse or not isinstance(node.target, ast.Name):
        return False
    first = node.body[0]
    if not isinstance(first, ast.If) or first.orelse or len(node.body) < 2:
        return False
    is_range = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func).endswith("range")
    return is_range and len(first.body) == 1 and isinstance(first.body[0], ast.Break)


def is_read(loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether the variable that counts is read by the test, or outside of the loop."""
    name = cast(ast.Name, loop.target).id
    inside = {id(n) for part in loop.body[1:] for n in ast.walk(part)}
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(function) if id(n) not in inside
    )  # fmt: skip
