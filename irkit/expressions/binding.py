"""Which names are what: parameters, results, indices, sizes, functions; and of which shape, for tensors
that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from irkit.expressions.grammar import parse
from irkit.expressions.ranges import Domain, Shape, check_size, check_whole, infer
from irkit.expressions.syntax import (
    REDUCTIONS,
    Apply,
    Call,
    Expr,
    ExpressionError,
    Function,
    Name,
    Number,
    Parameter,
    Place,
    Range,
    Read,
    Statement,
    reads_of,
    rebuilt,
)
from irkit.expressions.typing import FUNCTIONS, TYPES, DType, index, typed


@dataclass(frozen=True)
class Program:
    """A text in which every name is known: `items` are statements, and what is said of tensors before
    them."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    items: tuple[Statement | Parameter, ...]


@dataclass(frozen=True)
class Step:
    """A statement whose sizes are numbers, over its ranges. `operands`: the tensors that it reads, in
    order; `shapes` has theirs."""

    statement: Statement
    domain: Domain
    dtype: DType
    operands: tuple[str, ...]
    shapes: Mapping[str, Shape]

    @property
    def is_product(self) -> bool:
        """Whether it is a sum of products of two elements, at indices that are known before a run: of a
        result and two tensors that have dimensions, as products have."""
        value = self.statement.value
        if self.statement.operator != "+" or self.domain.checked or not isinstance(value, Apply):
            return False
        pair = value.function == "*" and all(
            isinstance(a, Read) and a.indices for a in value.arguments
        )
        return pair and bool(self.domain.reduced) and bool(self.domain.parallel)


def operands_of(statement: Statement) -> tuple[str, ...]:
    """The tensors that a statement reads, each once, in the order of the text; what it adds to first."""
    own = [] if statement.fresh else [statement.target]
    every = [r.tensor for v in (statement.value, *statement.exists) for r in reads_of(v)]
    return tuple(dict.fromkeys([*own, *every]))


@lru_cache(maxsize=512)
def program_of(text: str) -> Program:
    """A text as a program: its last function, into which calls of others are written; or its statements
    alone, whose parameters are the tensors that are read and not assigned, whose results those that no
    later one reads.

    Raises ExpressionError.
    """
    found = parse(text)
    if isinstance(found[0], Function):
        functions = cast("list[Function]", found)
        known: dict[str, Function] = {}
        for function in functions:
            if function.name in known or function.name in FUNCTIONS:
                raise ExpressionError(
                    f"there is another function '{function.name}'", function.place
                )
            known[function.name] = function
        return _Resolver(known).program(functions[-1])
    return _Resolver({}).bare(cast("list[Statement | Call]", found))


def bind(
    program: Program, shapes: Sequence[Shape], dtypes: Sequence[DType]
) -> tuple[list[Step], dict[str, Shape]]:
    """The program's statements in order, for arguments of these shapes and types, and the shapes of all
    tensors.

    Raises ExpressionError for what does not fit.
    """
    if len(shapes) != len(program.parameters):
        names = ", ".join(p.name for p in program.parameters)
        raise ExpressionError(
            f"'{program.name}' takes {len(program.parameters)} tensor(s) ({names}), got {len(shapes)}"
        )
    named = [p.name for p in program.parameters]
    env = _Env(dict(zip(named, shapes, strict=True)), dict(zip(named, dtypes, strict=True)), {}, {})
    steps: list[Step] = []
    for parameter in program.parameters:
        env.hold(parameter)
    for item in program.items:
        if isinstance(item, Parameter):
            env.hold(item)
        else:
            steps += env.steps(item)
    return steps, env.shapes


@dataclass
class _Env:
    """What is known of tensors, sizes and types so far."""

    shapes: dict[str, Shape]
    dtypes: dict[str, DType]
    sizes: dict[str, int]
    types: dict[str, DType]

    def hold(self, said: Parameter) -> None:
        """A tensor is as it is said to be. Raises ExpressionError."""
        shape, dtype = self.shapes[said.name], self.dtypes[said.name]
        want = TYPES.get(said.type) or self.types.setdefault(said.type, dtype)
        if dtype != want:
            raise ExpressionError(f"'{said.name}' is of {dtype}; expected {want}", said.place)
        if said.sizes is None:
            return
        if len(said.sizes) != len(shape):
            raise ExpressionError(
                f"'{said.name}' has shape {list(shape)}; expected {len(said.sizes)} dimension(s)",
                said.place,
            )
        for size, have in zip(said.sizes, shape, strict=True):
            wanted = size if isinstance(size, int) else self.sizes.setdefault(size, have)
            if wanted != have:
                known = "" if isinstance(size, int) else f" {size} ="
                raise ExpressionError(
                    f"'{said.name}' has shape {list(shape)}; expected{known} {wanted} in place of {have}",
                    said.place,
                )

    def steps(self, statement: Statement) -> list[Step]:
        """A statement with numbers for sizes, and what it runs over; what adds to what is there already as
        two."""
        statement = _numbered(statement, self.sizes)
        domain = infer(statement, self.shapes)
        for value in (statement.value, *statement.exists):
            for expr in (e for read in reads_of(value) for e in read.indices):
                index(expr, self.dtypes)
        if statement.operator and typed(statement.value, self.dtypes).dtype.kind == "b":
            raise ExpressionError(
                "a reduction of conditions: choose by them (`c ? 1 : 0`)", statement.place
            )
        if statement.fresh:
            return [self._step(statement, domain)]
        check_whole(statement, domain, self.shapes[statement.target])
        made, value = list[Step](), statement.value
        own = Read(
            statement.target, tuple(Name(i) for i in statement.indices), place=statement.place
        )
        if domain.reduced:
            part = f"{statement.target}_part"
            while part in self.shapes:
                part += "_"
            ranges = tuple(Range(x.name, Number(x.low), Number(x.high)) for x in domain.loops)
            alone = replace(statement, target=part, fresh=True, ranges=ranges, exists=())
            made.append(self._step(alone, domain))
            value = replace(own, tensor=part)
        joined = Apply(REDUCTIONS[statement.operator], (own, value), place=statement.place)
        whole = replace(statement, operator="", fresh=True, value=joined)
        return [*made, self._step(whole, replace(domain, reduced=(), checked=()))]

    def _step(self, statement: Statement, domain: Domain) -> Step:
        found = typed(statement.value, self.dtypes).dtype
        check_size(statement, domain, found.itemsize)
        step = Step(statement, domain, found, operands_of(statement), dict(self.shapes))
        self.shapes[statement.target], self.dtypes[statement.target] = domain.shape, found
        return step


def _numbered(statement: Statement, sizes: Mapping[str, int]) -> Statement:
    def number(expr: Expr) -> Expr | None:
        if isinstance(expr, Name) and expr.name in sizes:
            return Number(sizes[expr.name], place=expr.place)
        return None

    return replace(
        statement,
        value=rebuilt(statement.value, number),
        exists=tuple(cast(Read, rebuilt(r, number)) for r in statement.exists),
        ranges=tuple(
            replace(r, low=rebuilt(r.low, number), high=rebuilt(r.high, number))
            for r in statement.ranges
        ),
    )


class _Resolver:
    """Names of a text, looked up in order."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._calls = 0

    def program(self, function: Function) -> Program:
        """A function with all calls in it written out."""
        tensors = {p.name for p in function.parameters}
        if len(tensors) < len(function.parameters):
            raise ExpressionError(
                f"two parameters of '{function.name}' share a name", function.place
            )
        items = self._body(function, {}, tensors, ())
        for result in function.results:
            if result not in tensors or result in {p.name for p in function.parameters}:
                raise ExpressionError(f"the result '{result}' is not assigned", function.place)
        return Program(function.name, function.parameters, function.results, tuple(items))

    def bare(self, lines: Sequence[Statement | Call]) -> Program:
        """Statements without a function around them."""
        statements = [x for x in lines if isinstance(x, Statement)]
        if len(statements) < len(lines):
            call = next(x for x in lines if isinstance(x, Call))
            raise ExpressionError(f"there is no function '{call.function}'", call.place)
        given, made, used = dict[str, Place](), list[str](), set[str]()
        for statement in statements:
            for value in (statement.value, *statement.exists):
                for read in _tensor_reads(value):
                    used.add(read.tensor)
                    if read.tensor not in made:
                        given.setdefault(read.tensor, read.place)
            made.append(statement.target)
        parameters = tuple(Parameter(n, f"type of {n}", None, p) for n, p in given.items())
        last = statements[-1].target
        results = tuple(n for n in dict.fromkeys(made) if n not in used or n == last)
        function = Function(
            "expression", parameters, results, tuple(statements), statements[0].place
        )
        return self.program(function)

    def _body(
        self,
        function: Function,
        renamed: Mapping[str, str],
        tensors: set[str],
        outer: tuple[str, ...],
    ) -> list[Statement | Parameter]:
        """The statements of a function whose names are `renamed`; what they assign goes to `tensors`."""
        if function.name in outer:
            raise ExpressionError(f"'{function.name}' calls itself", function.place)
        own = {p.name for p in function.parameters}
        sizes = {s for p in function.parameters for s in p.sizes or () if isinstance(s, str)}
        scope = _Scope({n: renamed.get(n, n) for n in own}, sizes, renamed)
        items: list[Statement | Parameter] = []
        for line in function.body:
            call = self._as_call(line, scope)
            if call is not None:
                items += self._inlined(call, scope, tensors, (*outer, function.name))
                continue
            assert isinstance(line, Statement)
            items.append(scope.statement(line))
            tensors.add(items[-1].target if isinstance(items[-1], Statement) else "")
        return items

    def _as_call(self, line: Statement | Call, scope: _Scope) -> Call | None:
        """`T = f(A)` is a call where there is such a function."""
        if isinstance(line, Call):
            if line.function not in self._functions:
                raise ExpressionError(f"there is no function '{line.function}'", line.place)
            return line
        value = line.value
        if not isinstance(value, Read) or value.tensor not in self._functions:
            return None
        if line.operator or line.indices:
            raise ExpressionError(f"a call is assigned whole: `{line.target} = ...`", line.place)
        return Call((line.target,), value.tensor, value.indices, line.place)

    def _inlined(
        self, call: Call, scope: _Scope, tensors: set[str], outer: tuple[str, ...]
    ) -> list[Statement | Parameter]:
        function = self._functions[call.function]
        for what, given, wanted in (
            ("argument(s)", call.arguments, function.parameters),
            ("result(s)", call.targets, function.results),
        ):
            if len(given) != len(wanted):
                raise ExpressionError(
                    f"'{call.function}' has {len(wanted)} {what}, and {len(given)} here", call.place
                )
        self._calls += 1
        prefix = f"{call.function}_{self._calls}_"
        names = {n: prefix + n for n in _locals(function)}
        items: list[Statement | Parameter] = []
        for parameter, given in zip(function.parameters, call.arguments, strict=True):
            if not isinstance(given, Name) or given.name not in scope.tensors:
                raise ExpressionError("an argument is the name of a tensor", given.place)
            names[parameter.name] = scope.tensors[given.name]
            sizes = tuple(prefix + s if isinstance(s, str) else s for s in parameter.sizes or ())
            kind = parameter.type if parameter.type in TYPES else prefix + parameter.type
            items.append(Parameter(names[parameter.name], kind, sizes, call.place))
        for name, result in zip(call.targets, function.results, strict=True):
            names[result] = scope.assign(name, call.place)
        return [*items, *self._body(function, names, tensors, outer)]


def _tensor_reads(value: Expr) -> list[Read]:
    """Reads of what is no function."""
    return [r for r in reads_of(value) if r.tensor not in FUNCTIONS]


def _locals(function: Function) -> list[str]:
    sizes = [s for p in function.parameters for s in p.sizes or () if isinstance(s, str)]
    made = [t for x in function.body for t in (x.targets if isinstance(x, Call) else (x.target,))]
    return [*sizes, *made]


class _Scope:
    """The names of one function, under those that they have in the program."""

    def __init__(
        self, tensors: dict[str, str], sizes: set[str], renamed: Mapping[str, str]
    ) -> None:
        self.tensors, self._sizes, self._renamed = tensors, sizes, renamed
        self._given = set(tensors)

    def assign(self, name: str, place: Place, *, again: bool = False) -> str:
        """A tensor gets a value. Raises ExpressionError where it may not."""
        if name in self._given:
            raise ExpressionError(f"'{name}' is a parameter, which is not assigned", place)
        if name in self.tensors and not again:
            raise ExpressionError(
                f"'{name}' is assigned twice: give it another name, or add to it", place
            )
        if name in FUNCTIONS or name in self._sizes:
            raise ExpressionError(f"'{name}' is the name of a function or a size", place)
        self.tensors[name] = self._renamed.get(name, name)
        return self.tensors[name]

    def statement(self, line: Statement) -> Statement:
        """A statement with its names looked up."""
        indices = line.indices
        if len(set(indices)) < len(indices):
            raise ExpressionError("an index of the result stands twice", line.place)
        wrong = [i for i in indices if i in self._sizes or i in self.tensors]
        if wrong:
            raise ExpressionError(f"'{wrong[0]}' is a size or a tensor, and no index", line.place)
        if not line.fresh and line.target not in self.tensors:
            raise ExpressionError(
                f"'{line.target}' has no value yet to add to: start anew, `{line.operator}=!`",
                line.place,
            )
        value = rebuilt(line.value, self._looked_up)
        exists = tuple(cast(Read, rebuilt(r, self._looked_up)) for r in line.exists)
        ranges = tuple(
            replace(r, low=rebuilt(r.low, self._looked_up), high=rebuilt(r.high, self._looked_up))
            for r in line.ranges
        )
        target = self.assign(line.target, line.place, again=not line.fresh)
        return replace(line, target=target, value=value, exists=exists, ranges=ranges)

    def _looked_up(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Name):
            if expr.name in self.tensors:
                return Read(self.tensors[expr.name], (), place=expr.place)
            return replace(expr, name=self._renamed.get(expr.name, expr.name))
        if not isinstance(expr, Read):
            return None
        inner = tuple(rebuilt(e, self._looked_up) for e in expr.indices)
        if expr.tensor in self.tensors:
            return Read(self.tensors[expr.tensor], inner, place=expr.place)
        wanted = FUNCTIONS.get(expr.tensor)
        if wanted is None:
            raise ExpressionError(f"there is no tensor or function '{expr.tensor}'", expr.place)
        if wanted != len(inner):
            raise ExpressionError(
                f"'{expr.tensor}' takes {wanted} argument(s), and {len(inner)} here", expr.place
            )
        return Apply(expr.tensor, inner, place=expr.place)
