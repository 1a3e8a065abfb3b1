"""Texts of the same meaning that Numba has less to do with: branches are settled that are never taken, and
nested functions stand where they are called."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from irkit.runtime.plain.branches import settled
from irkit.runtime.plain.placing import put_in_place
from irkit.syntax_trees import in_one_thread


def plain(text: str) -> str:
    """A module's text without what Numba would take apart: comments and places in lines are lost."""
    return in_one_thread(lambda: ast.unparse(put_in_place(settled(ast.parse(text)))))


def digest() -> str:
    """Of what `plain` makes of texts."""
    h = hashlib.sha256()
    for path in sorted(Path(__path__[0]).glob("*.py")):
        h.update(path.read_bytes())
    return h.hexdigest()[:16]
