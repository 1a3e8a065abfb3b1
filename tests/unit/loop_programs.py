"""Random functions with loops, as text of the graph level."""

from __future__ import annotations

import random

ROWS, COLUMNS = 5, 3
ARRAY, ROW = f"tensor<{ROWS}x{COLUMNS}xf64>", f"tensor<{COLUMNS}xf64>"


class LoopProgram:
    """A function of two arrays and a row, with loops in which values old and new are read, written in parts,
    at fixed places and at places that move, and yielded in any order. `asks`: some of them go on as long as
    data say so, a few turns at most."""

    def __init__(self, seed: int, columns: bool = False, asks: bool = False) -> None:
        self.columns, self.asks = columns, asks
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.bounds: list[tuple[str, int, int]] = []
        values = {"%a": ARRAY, "%b": ARRAY, "%w": ROW, "%zero": ARRAY}
        values = self.block(values, 1)
        values = self.loop(values, 1, self.random.choice((1, 2)))
        if self.random.random() < 0.4:
            values = self.loop(self.block(values, 1), 1, 1)
        returned = [self.pick(values, t) for t in (ARRAY, ROW, ARRAY)]
        numbers = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in range(ROWS + 1))
        self.text = (
            f"func.func @main(%a: {ARRAY}, %b: {ARRAY}, %w: {ROW}) -> ({ARRAY}, {ROW}, {ARRAY}) {{\n"
            f"{numbers}\n  %zero = arith.constant dense<0.5> : {ARRAY}\n"
            + "\n".join(self.lines)
            + f"\n  func.return {', '.join(returned)} : {ARRAY}, {ROW}, {ARRAY}\n}}\n"
        )

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str, depth: int) -> None:
        self.lines.append("  " * depth + text)

    def pick(self, values: dict[str, str], t: str) -> str:
        """A value of a type, new ones rather than old ones."""
        names = [n for n, of in values.items() if of == t]
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def place(self, depth: int, size: int = 1) -> str:
        """A row number: constant, or a loop's variable and a little more."""
        options = [str(self.random.randrange(ROWS - size + 1))]
        for variable, low, high in self.bounds:
            if high - 1 + size <= ROWS:
                options.append(variable)
            if high + size <= ROWS:
                more = self.name()
                self.line(f"{more} = arith.addi {variable}, %c1 : index", depth)
                options.append(more)
            if low > 0 and high - 2 + size <= ROWS:
                less = self.name()
                self.line(f"{less} = arith.subi {variable}, %c1 : index", depth)
                options.append(less)
        return self.random.choice(options)

    def block(self, values: dict[str, str], depth: int) -> dict[str, str]:
        """A few ops."""
        values = dict(values)
        steps = (self.rows, self.arrays, self.row_of, self.row_into, self.part_into, self.number)
        if self.columns:
            steps = (*steps, self.column, self.column)
        for _ in range(self.random.randrange(1, 6)):
            name, t = self.random.choice(steps)(values, depth)
            values[name] = t
        return values

    def rows(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        return self.arithmetic(values, ROW, depth)

    def arrays(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        return self.arithmetic(values, ARRAY, depth)

    def arithmetic(self, values: dict[str, str], t: str, depth: int) -> tuple[str, str]:
        x, y, name = self.pick(values, t), self.pick(values, t), self.name()
        op = self.random.choice(("add", "sub", "max", "min"))
        self.line(f"{name} = graph.{op} {x}, {y} : ({t}, {t}) -> {t}", depth)
        return name, t

    def row_of(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        x, place, name = self.pick(values, ARRAY), self.place(depth), self.name()
        cut = f"[{place}, 0] [1, {COLUMNS}] [1, 1]"
        self.line(f"{name} = tensor.extract_slice {x}{cut} : {ARRAY} to {ROW}", depth)
        return name, ROW

    def row_into(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        x, y, place = self.pick(values, ROW), self.pick(values, ARRAY), self.place(depth)
        name, cut = self.name(), f"[{place}, 0] [1, {COLUMNS}] [1, 1]"
        self.line(f"{name} = tensor.insert_slice {x} into {y}{cut} : {ROW} into {ARRAY}", depth)
        return name, ARRAY

    def part_into(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        """Neighbours in every other column and all but a row, as stencils have them."""
        x, y, name = self.pick(values, ARRAY), self.pick(values, ARRAY), self.name()
        part = f"tensor<{ROWS - 1}x2xf64>"
        low, high, total = self.name(), self.name(), self.name()
        size = f"[{ROWS - 1}, 2] [1, 2]"
        self.line(f"{low} = tensor.extract_slice {x}[0, 0] {size} : {ARRAY} to {part}", depth)
        self.line(f"{high} = tensor.extract_slice {x}[1, 0] {size} : {ARRAY} to {part}", depth)
        self.line(f"{total} = graph.sub {low}, {high} : ({part}, {part}) -> {part}", depth)
        self.line(
            f"{name} = tensor.insert_slice {total} into {y}[1, 0] {size} : {part} into {ARRAY}",
            depth,
        )
        return name, ARRAY

    def column(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        """Two columns of some rows to others, at places of which one at least moves."""
        x, y, name, cut = (
            self.pick(values, ARRAY),
            self.pick(values, ARRAY),
            self.name(),
            self.name(),
        )
        size, part = "[3, 2] [1, 1]", "tensor<3x2xf64>"
        there, here = (
            f"[{self.place(depth, 3)}, {self.random.randrange(2)}] {size}" for _ in range(2)
        )
        self.line(f"{cut} = tensor.extract_slice {x}{there} : {ARRAY} to {part}", depth)
        self.line(f"{name} = tensor.insert_slice {cut} into {y}{here} : {part} into {ARRAY}", depth)
        return name, ARRAY

    def number(self, values: dict[str, str], depth: int) -> tuple[str, str]:
        """The variable of a loop as a number."""
        if not self.bounds:
            return self.rows(values, depth)
        cast, scalar, real, name = (self.name() for _ in range(4))
        variable = self.bounds[-1][0]
        self.line(f"{cast} = arith.index_cast {variable} : index to i64", depth)
        self.line(f"{scalar} = tensor.from_elements {cast} : tensor<i64>", depth)
        self.line(
            f"{real} = graph.cast {scalar} {{to = f64}} : (tensor<i64>) -> tensor<f64>", depth
        )
        self.line(
            f"{name} = graph.add {self.pick(values, ROW)}, {real} : ({ROW}, tensor<f64>) -> {ROW}",
            depth,
        )
        return name, ROW

    def loop(self, values: dict[str, str], depth: int, nesting: int) -> dict[str, str]:
        """A loop that carries some values, and reads others."""
        types = [
            self.random.choice((ARRAY, ARRAY, ROW)) for _ in range(self.random.randrange(1, 4))
        ]
        start = [self.pick(values, t) for t in types]
        arguments, result = [self.name() for _ in types], self.name()
        if self.asks and self.random.random() < 0.6:
            return self.asking(values, depth, nesting, types, start)
        low = self.random.randrange(2)
        high = self.random.randrange(low, ROWS)
        variable = self.name()
        carried = ", ".join(f"{a} = {s}" for a, s in zip(arguments, start, strict=True))
        self.line(
            f"{result}:{len(types)} = scf.for {variable} = %c{low} to %c{high} step %c1 "
            f"iter_args({carried}) -> ({', '.join(types)}) {{",
            depth,
        )
        self.bounds.append((variable, low, high))
        inner = self.block({**values, **dict(zip(arguments, types, strict=True))}, depth + 1)
        if nesting > 1:
            inner = self.block(self.loop(inner, depth + 1, nesting - 1), depth + 1)
        yielded = [self.pick(inner, t) for t in types]
        self.line(f"scf.yield {', '.join(yielded)} : {', '.join(types)}", depth + 1)
        self.bounds.pop()
        self.line("}", depth)
        return {**values, **{f"{result}#{n}": t for n, t in enumerate(types)}}

    def asking(
        self,
        values: dict[str, str],
        depth: int,
        nesting: int,
        types: list[str],
        start: list[str],
    ) -> dict[str, str]:
        """The same as long as a number is below a limit, and one of what is carried is."""
        turns, at = self.random.randrange(4), self.random.randrange(len(types) + 1)
        go, count, limit, one = (self.name() for _ in range(4))
        self.line(f"{go} = arith.constant dense<{str(turns > 0).lower()}> : tensor<i1>", depth)
        for name, number in ((count, 1), (limit, turns), (one, 1)):
            self.line(f"{name} = arith.constant dense<{number}> : tensor<i64>", depth)
        types = [*types[:at], "tensor<i1>", *types[at:], "tensor<i64>"]
        start = [*start[:at], go, *start[at:], count]
        before, arguments = ([self.name() for _ in types] for _ in range(2))
        result, held = self.name(), self.name()
        carried = ", ".join(f"{a} = {s}" for a, s in zip(before, start, strict=True))
        listed = ", ".join(types)
        self.line(
            f"{result}:{len(types)} = scf.while ({carried}) : ({listed}) -> ({listed}) {{", depth
        )
        self.line(f"{held} = tensor.extract {before[at]}[] : tensor<i1>", depth + 1)
        self.line(f"scf.condition({held}) {', '.join(before)} : {listed}", depth + 1)
        given = ", ".join(f"{a}: {t}" for a, t in zip(arguments, types, strict=True))
        self.line(f"}} do {{\n^bb0({given}):", depth)
        inner = self.block({**values, **dict(zip(arguments, types, strict=True))}, depth + 1)
        if nesting > 1:
            inner = self.block(self.loop(inner, depth + 1, nesting - 1), depth + 1)
        more, fewer, small, both = (self.name() for _ in range(4))
        lines = (
            f'{fewer} = graph.compare {arguments[-1]}, {limit} {{predicate = "lt"}} : '
            "(tensor<i64>, tensor<i64>) -> tensor<i1>",
            f"{more} = graph.add {arguments[-1]}, {one} : (tensor<i64>, tensor<i64>) -> tensor<i64>",
        )
        for line in (*lines, *self.below(self.pick(inner, ROW), small)):
            self.line(line, depth + 1)
        line = f"{both} = graph.and {fewer}, {small} : (tensor<i1>, tensor<i1>) -> tensor<i1>"
        self.line(line, depth + 1)
        made = {"tensor<i1>": both, "tensor<i64>": more}
        yielded = [made[t] if t in made else self.pick(inner, t) for t in types]
        self.line(f"scf.yield {', '.join(yielded)} : {listed}", depth + 1)
        self.line("}", depth)
        return {**values, **{f"{result}#{n}": t for n, t in enumerate(types)}}

    def below(self, row: str, name: str) -> list[str]:
        """Whether the first of a row is below a limit."""
        part, first, limit = (self.name() for _ in range(3))
        cut = "{offsets = array<i64: 0>, sizes = array<i64: 1>, strides = array<i64: 1>}"
        return [
            f"{part} = graph.slice {row} {cut} : ({ROW}) -> tensor<1xf64>",
            f"{first} = graph.reshape {part} {{shape = array<i64>}} : (tensor<1xf64>) -> tensor<f64>",
            f"{limit} = arith.constant dense<2.0> : tensor<f64>",
            f'{name} = graph.compare {first}, {limit} {{predicate = "lt"}} : '
            "(tensor<f64>, tensor<f64>) -> tensor<i1>",
        ]
