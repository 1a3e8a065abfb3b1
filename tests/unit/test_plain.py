"""Texts that Numba has less to do with: they do what they did, and say where nested functions stay."""

# pyright: basic

import ast

import pytest

from irkit.rkernels.registry import registered
from irkit.rkernels.templates import template_source
from irkit.runtime.plain import plain
from irkit.runtime.plain.branches import known


class Memory(list):
    """A list that keeps what was done to it."""

    def __init__(self, values):
        super().__init__(values)
        self.done = []

    def __getitem__(self, at):
        self.done.append(("read", at))
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        self.done.append(("write", at, value))
        super().__setitem__(at, value)


def ran(text, a, b):
    """What f(a, b, p) returns and does to p."""
    memory, names = Memory([3, 1, 4, 1, 5, 9, 2, 6]), {}
    exec(text, names)
    return names["f"](a, b, memory), list(memory), memory.done


def body_of(lines):
    return "def f(a, b, p):\n" + "\n".join(f"    {line}" for line in lines.strip("\n").split("\n"))


PLACED = {
    "an expression": """
def inside(x): return x < b and x != 3
if a and inside(a + 1): return 1
return 2 if inside(a) else inside(b)
""",
    "statements and a value": """
def place(x):
    y = x * 2
    for i in range(2):
        y += i
    return y, x
q, r = place(a)
q, r = place(place(q + 1)[0])
s = place(b), place(r - 2)
return q * 3 + r, s
""",
    "no value": """
def store(i, v):
    if i < 5:
        p[i] = v
for i in range(a):
    store(i, b)
    store(i + 2, p[i])
""",
    "its argument's name is its own": """
def turned(a, b):
    a += 1
    b = a + b
    return b, a
a, b = turned(b, a)
b, a = turned(a, b)
return a, b
""",
    "a name outside that changes": """
total = 0
def added(x):
    y = total + x
    return y
for i in range(a):
    total = added(i)
    total += 1
return total, added(b)
""",
    "nested in one that calls another": """
def outer(x):
    def inner(z):
        w = z + x
        return w
    return inner(a) * inner(x)
return outer(b) + outer(2)
""",
    "in one case alone": """
def found(i):
    total = 0
    for k in range(3):
        total += p[i + k]
    return total
value = found(a) if b else p[1]
value, other = (found(1), 2) if a else (3, found(0))
return value, other
""",
    "a branch that is never taken": """
def never(x):
    for i in range(x):
        p[i] = 0
    return x
if 2 * 3 == 5 or 0:
    a = never(a)
elif not 1:
    b = never(b)
else:
    a = 4 if 1 < 2 else never(a)
return a + (never(b) if 0 else 1)
""",
    "the test of an else-branch": """
def big(x):
    y = x * x
    return y > 8
if a > 100:
    return 1
elif big(b):
    return 2
return 3
""",
}  # fmt: skip
STAYING = {
    "a name outside that others have inside": """
y = 7
def one(x):
    z = x + y
    return z
def other(y):
    y = y * 2
    return one(y) + y
return other(a) + y
""",
    "behind what reads": """
def next(i):
    p[i] = p[i] + 1
    return i
return p[0] + next(0) + next(p[1]) * p[0]
""",
    "not always reached": """
def next(i):
    p[i] = p[i] + 1
    return i
return a and next(0) or b and next(a) or p[1] < p[0] < next(1)
""",
    "computed in every turn": """
def next(i):
    p[i] = p[i] + 1
    return p[i]
while next(0) < 9 and a:
    b += 1
return b
""",
    "a value in the middle": """
def which(x):
    if x:
        return 3
    return x
return which(a) + which(0)
""",
    "handed on": """
def one(x):
    y = x + 1
    return y
g = one if a else abs
return g(b)
""",
    "of a name of two": """
if a:
    def one(x):
        return x + 1
else:
    def one(x):
        return x + 2
return one(b)
""",
    "called by keyword": """
def one(x, y=2):
    return x - y
return one(y=a, x=b) + one(a)
""",
    "in a comprehension": """
def one(x):
    y = x + 1
    return y
return [one(x) for x in p]
""",
}


@pytest.mark.parametrize("name", [*PLACED, *STAYING])
@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0), (2, 3), (1, 1), (3, 4)])
def test_it_does_what_it_did(name, a, b):
    text = body_of((PLACED | STAYING)[name])
    assert ran(plain(text), a, b) == ran(text, a, b)


@pytest.mark.parametrize("name", PLACED)
def test_no_function_is_nested(name):
    assert plain(body_of(PLACED[name])).count("def ") == 1


@pytest.mark.parametrize("name", STAYING)
def test_some_stay(name):
    assert plain(body_of(STAYING[name])).count("def ") > 1


def test_what_is_never_taken_is_left_out():
    assert plain("def f(a):\n    if 0:\n        return 1\n    if 3 < 4 and a:\n        pass\n") == (
        "def f(a):\n    pass\n    if 3 < 4 and a:\n        pass"
    )


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ("0 == 0", True),
        ("(256 + 31) // 32 % 2", False),
        ("not 7 % 4 - 3", True),
        ("0 and a", False),
        ("a and 0", None),
        ("1 or a", True),
        ("a or 1", None),
        ("1 // 0", None),
        ("1 < 2 < 3", None),
        ("'a' == 'a'", None),
        ("2.0 > 1", None),
        ("True", True),
        ("-1 < 0", True),
    ],
)
def test_tests_that_are_known(test, holds):
    assert known(ast.parse(test, mode="eval").body) is holds


def test_nothing_is_nested_in_templates_for_a_gpu():
    """All that templates nest can stand in place; one that cannot costs Numba long."""
    for text in sorted({template_source(rkernel) for rkernel in registered("cuda")}):
        for function in ast.parse(plain(text)).body:
            nested = [d for d in ast.walk(function) if isinstance(d, ast.FunctionDef)]
            assert nested == [function]
