"""Parse MLIR text so that every op knows where it stands in its file, and errors point there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.ir import AttributeInvT, Block, BlockArgument, Operation, SSAValue
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from irkit.driver.diagnostics.diagnostic import Diagnostic, Place, UserError, did_you_mean, note

T = TypeVar("T")

UNCHECKED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
)
"""What constructors and verifiers of xDSL's dialects raise on input that they do not check."""


class LocatingParser(Parser):
    """xDSL's parser; an op without `loc(...)` gets the place of its name in the file."""

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, text, name)
        self._file = StringAttr(name)
        self._line_starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self._op_starts: list[int] = []
        self._text_end = len(text.rstrip())
        self._first_uses: dict[str, tuple[Span, list[str]]] = {}

    def place(self, start: int, end: int | None = None) -> Place:
        """The Place of characters [start, end) of the input."""
        line = bisect_right(self._line_starts, start)
        column = start - self._line_starts[line - 1] + 1
        length = max(1, (start + 1 if end is None else end) - start)
        return Place(self._file.data, line, column, length)

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        # Runs once at the start of every op: what follows the results is the op's name.
        results = super()._parse_op_result_list()
        self._op_starts.append(self.pos)
        return results

    def parse_operation(self) -> Operation:
        op = super().parse_operation()
        start = self._op_starts.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = self._location(start)
        return op

    def _location(self, start: int) -> FileLineColLoc:
        place = self.place(start)
        return FileLineColLoc(self._file, IntAttr(place.line), IntAttr(place.column))

    def _get_op_by_name(self, name: str) -> type[Operation]:
        op_type = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        # As in MLIR, only an op of an unknown dialect may be unregistered.
        known = name.partition(".")[0] in self.ctx.registered_dialect_names
        if op_type is not None and not (known and issubclass(op_type, UnregisteredOp)):
            return op_type
        start = self._op_starts[-1]
        raise ParseError(Span(start, start + len(name), self.lexer.input), self._unknown(name))

    def _unknown(self, name: str) -> str:
        """Why there is no op called `name`."""
        dialect = name.partition(".")[0]
        if "." not in name:
            return f"unknown op '{name}'"
        if dialect not in self.ctx.registered_dialect_names:
            hint = did_you_mean(dialect, self.ctx.registered_dialect_names)
            return f"unknown dialect '{dialect}' of op '{name}'{hint}"
        return f"unknown op '{name}'{did_you_mean(name, (op.name for op in self.ctx.loaded_ops))}"

    def _parse_dialect_resource_handle(
        self, dialect_name: str, interface: OpAsmDialectInterface
    ) -> str:
        # xDSL keeps resources in the process-wide dialect and renames one it has seen before. Ours
        # are names of weights: the same name is the same array, however often it is read.
        key = self.parse_identifier(" for resource handle")
        if interface.lookup(key) is None:
            interface.declare_resource(key)
        return key

    def parse_comma_separated_list(
        self, delimiter: AttrParser.Delimiter, parse: Callable[[], T], context_msg: str = ""
    ) -> list[T]:
        # The types of a linalg op's several results are in parentheses; xDSL prints them, and reads
        # them as if they were not.
        opened = self._current_token.kind == MLIRTokenKind.L_PAREN
        if opened and delimiter is self.Delimiter.NONE and parse == self.parse_attribute:
            delimiter = self.Delimiter.PAREN
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _parse_block(self) -> Block:
        # xDSL forgets where a block stood that was used before it was defined.
        token = self._current_token
        name = token.text[1:]
        if name in self.blocks and name not in self.forward_block_references:
            self.raise_error(f"block '{token.text}' is already defined", token.span)
        return super()._parse_block()

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for value in values:
            if isinstance(value, BlockArgument) and isinstance(value.location, UnknownLoc):
                value.location = self._location(span.start)

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        name = operand.operand_name
        if name not in self.ssa_values and name not in self._first_uses:
            self._first_uses[name] = (operand.span, list(self.ssa_values))
        return super().resolve_operand(operand, type)

    @property
    def at_end(self) -> bool:
        """Whether nothing but comments is left."""
        return self._current_token.kind == MLIRTokenKind.EOF

    def op_place(self) -> Place:
        """Where the op stands that is being parsed."""
        return self.place(self._op_starts[-1] if self._op_starts else self.pos)

    def undefined_value(self) -> Diagnostic | None:
        """The first use of a value that is nowhere defined, once all has been read."""
        for name in self.forward_ssa_references:
            if name in self._first_uses:
                span, visible = self._first_uses[name]
                hint = did_you_mean(f"%{name}", (f"%{other}" for other in visible))
                return Diagnostic(f"use of undefined value '%{name}'{hint}", self._span_place(span))
        return None

    def diagnostic(self, error: ParseError) -> Diagnostic:
        """A parse error as a diagnostic."""
        if error.msg.startswith("values used but not defined") and (d := self.undefined_value()):
            return d
        if not isinstance(error, MultipleSpansParseError):
            return Diagnostic(_reworded(error.msg.strip()), self._span_place(error.span))
        if error.msg.startswith("region ends with missing block"):
            span = error.refs[0][0]
            return Diagnostic(f"use of undefined block '{span.text}'", self._span_place(span))
        notes = [
            note(text or (error.ref_text or "see here").rstrip(":"), self._span_place(span))
            for span, text in error.refs
        ]
        return Diagnostic(_reworded(error.msg), self._span_place(error.span), notes=tuple(notes))

    def _span_place(self, span: Span[str] | Span[bytes]) -> Place:
        # The end of the file is shown behind its last word, not on the empty line that follows.
        start = min(span.start, self._text_end)
        return self.place(start, max(start + 1, min(span.end, self._text_end)))


def _reworded(message: str) -> str:
    return "expected an op" if message == "Could not parse entire input!" else _lower_first(message)


def _lower_first(message: str) -> str:
    """Messages begin in lower case; an acronym keeps its capitals."""
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def _raise(diagnostic: Diagnostic) -> UserError:
    return UserError(diagnostic.message, diagnostic.place, diagnostic.notes)


_ESCAPES = r'(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+'
# A comment, a whole string, or a quote that opens a string that its line does not close.
_STRINGS = re.compile(rf'//[^\n]*|"{_ESCAPES}"|"')
_NO_ESCAPE = re.compile(rf"{_ESCAPES}(\\.?)")


def _check_strings(text: str, name: str) -> None:
    """Refuse a string that is not closed, or whose backslash begins no escape: xDSL's lexer takes exponential
    time to find out."""
    for match in _STRINGS.finditer(text):
        if match[0] != '"':
            continue
        wrong = _NO_ESCAPE.match(text, match.end())
        start = match.start() if wrong is None else wrong.start(1)
        line_start = text.rfind("\n", 0, start) + 1
        place = Place(name, text.count("\n", 0, start) + 1, start - line_start + 1)
        if wrong is None:
            raise UserError("this string is not closed on its line", place)
        raise UserError(
            f"'{wrong[1]}' begins no escape of a string: expected a quote, a backslash, n, t or two "
            "hexadecimal digits behind a backslash",
            place,
        )


def parse_module(ctx: Context, text: str, name: str) -> ModuleOp:
    """Parse `text`, the content of file `name`. Raises UserError at the offending place."""
    _check_strings(text, name)
    try:
        parser = LocatingParser(ctx, text, name)
    except ParseError as error:  # the first token already is malformed
        place = error.span.get_location()
        raise UserError(error.msg, Place(name, place.line, place.col)) from None
    try:
        module = ModuleOp([]) if parser.at_end else parser.parse_module()
    except ParseError as error:
        raise _raise(parser.diagnostic(error)) from None
    except RecursionError:
        raise UserError("regions are nested too deeply", parser.place(parser.pos)) from None
    except (DiagnosticException, ValueError, OverflowError) as error:
        # Raised by an op's or attribute's own constructor, which does not know where it stands.
        message = _lower_first(str(error).split("\n", 1)[0])
        raise UserError(message, parser.op_place()) from None
    except MemoryError:
        # xDSL computes the range of an integer type of any width.
        raise UserError("a number or a type here is too large", parser.op_place()) from None
    except UNCHECKED:
        raise UserError("malformed op", parser.op_place()) from None
    if isinstance(module.location, UnknownLoc):
        module.location = FileLineColLoc(StringAttr(name), IntAttr(1), IntAttr(1))
    return module
