"""Trees are made one at a time, and anew where CPython has lost count."""

from __future__ import annotations

import ast
import threading

import pytest

from irkit.syntax_trees import in_one_thread


def test_what_lost_count_is_made_anew() -> None:
    left = [SystemError("AST constructor recursion depth mismatch (before=90, after=65)")] * 3

    def make() -> str:
        if left:
            raise left.pop()
        return ast.unparse(ast.parse("x + 1"))

    assert in_one_thread(make) == "x + 1"


def test_other_errors_and_lasting_ones_are_told() -> None:
    with pytest.raises(SyntaxError):
        in_one_thread(lambda: ast.parse("x +"))

    def make() -> None:
        raise SystemError("always")

    with pytest.raises(SystemError, match="always"):
        in_one_thread(make)


def test_no_two_at_once() -> None:
    inside, most = [0], [0]

    def make() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        threading.Event().wait(0.001)
        inside[0] -= 1

    threads = [threading.Thread(target=in_one_thread, args=(make,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
