"""Whose state a file has: what a program says of itself there, and what is said of another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from irkit.errors import InvalidInputError, UnsupportedError

PREFIX, FORMAT = "irkit.", "irkit.state"
"""Names of what irkit says in a file; the second, that it says something."""
IDENTITY = "model_digest"
"""In a program's report: the digest of the model that was compiled."""


@dataclass(frozen=True)
class Part:
    """A part of what makes a program the one that it is. `digest`: one for all that compute the same by the
    same operations, None where that is not known; `name`: for messages."""

    digest: str | None
    name: str


class Identity(Protocol):
    """What a program says of itself in files of its state."""

    def parts(self, said: Mapping[str, str] | None) -> dict[str, Part]:
        """Its parts by name. `said`: what a file says of whose state it has, which may hang on the shapes of
        which its program was made; None: for a file to be written."""
        ...

    def more(self) -> dict[str, str]:
        """What else it says."""
        ...

    def taken(self, said: Mapping[str, str], other: Collection[str]) -> None:
        """State was read from a file, of which parts may be `other`."""
        ...


@dataclass(frozen=True)
class ProgramIdentity:
    """That of a compiled program, by the digest of what was compiled."""

    digest: str | None

    def parts(self, said: Mapping[str, str] | None) -> dict[str, Part]:
        """All of it is the program."""
        return {"program": Part(self.digest, "the program")}

    def more(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def taken(self, said: Mapping[str, str], other: Collection[str]) -> None:
        """Nothing hangs on it."""


def said_by(identity: Identity) -> dict[str, str]:
    """What a file of a program's state says of the program."""
    found = {FORMAT: "1", **identity.more()}
    for name, part in identity.parts(None).items():
        if part.digest:
            found[_digest(name)] = part.digest
            found[_name(name)] = part.name
    return found


def check_identity(
    identity: Identity, said: Mapping[str, str], other: Collection[str], where: str
) -> None:
    """Raises InvalidInputError where a file has the state of another program than this, but for the parts
    that may be `other`; UnsupportedError for parts that there are not."""
    own = identity.parts(said)
    unknown = [name for name in other if name not in own]
    if isinstance(other, str) or unknown:
        raise UnsupportedError(f"other={other!r}: expected names among {', '.join(own)}")
    asked = {name: part for name, part in own.items() if name not in other}
    silent = [name for name in asked if _digest(name) not in said]
    differing = [
        name for name, part in asked.items() if part.digest != said.get(_digest(name), part.digest)
    ]
    if not silent and not differing:
        return
    reasons = [_of_another(name, asked[name], said) for name in differing]
    if silent:
        reasons.append(f"it does not say of which {' and '.join(silent)}{_why_silent(said)}")
    accepted = ", ".join(repr(name) for name in [*differing, *silent])
    raise InvalidInputError(
        f"'{where}' is not known to be state of this: {'; '.join(reasons)}. Nothing was changed; "
        f"load(..., other=[{accepted}]) takes it all the same"
    )


def _of_another(name: str, own: Part, said: Mapping[str, str]) -> str:
    there = said.get(_name(name), "")
    if there == own.name:
        return f"its {name} is another one"
    return f"its {name} is {there or 'another one'}, here {own.name}"


def _why_silent(said: Mapping[str, str]) -> str:
    if FORMAT not in said:
        return ", as files of other tools and of earlier versions of irkit do not"
    return ", as it was saved before a step was compiled"


def _digest(part: str) -> str:
    return f"{PREFIX}{part}"


def _name(part: str) -> str:
    return f"{PREFIX}{part}.name"
