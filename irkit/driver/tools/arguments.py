"""Argument parsing that fails like everything else: one message, a did-you-mean, exit code 1."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import IO, NoReturn

from irkit.driver.diagnostics.diagnostic import UserError, did_you_mean


class Finished(Exception):
    """The tool has done what its arguments ask for (`--help`)."""


class ArgumentParser(argparse.ArgumentParser):
    """argparse without its exits: raises UserError and Finished, prints to a given stream."""

    def __init__(self, prog: str, description: str, stdout: IO[str]) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._stdout = stdout

    def parse_all(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse every argument. Raises UserError for one that is unknown or malformed."""
        options, unknown = self.parse_known_args(list(argv))
        for argument in unknown:
            if argument.startswith("-"):
                flag = argument.split("=", 1)[0]
                hint = did_you_mean(flag, self.flags())
                raise UserError(f"unknown flag '{flag}'{hint}", self.prog)
            raise UserError(f"unexpected argument '{argument}'", self.prog)
        return options

    def flags(self) -> list[str]:
        """Every flag, in all its spellings."""
        return [flag for action in self._actions for flag in action.option_strings]

    def print_help(self, file: object = None) -> None:
        self._stdout.write(self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise Finished

    def error(self, message: str) -> NoReturn:
        raise UserError(message, self.prog)


def at_least(least: int) -> Callable[[str], int]:
    """The type of a flag whose number is `least` or more."""

    def number(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"invalid int value: '{text}'") from None
        if found < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, got {found}")
        return found

    return number
