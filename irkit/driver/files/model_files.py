"""Read and write the files that the tools take: IR text, and the weights beside it."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import UserError
from irkit.errors import ArtifactError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from irkit.weights import WeightStore

STDIN = "<stdin>"
MODELS = (".onnx", ".ubj")
"""Suffixes of files, not of text, that irkit-translate takes."""


def read_bytes(path: str) -> bytes:
    """The content of a file. Raises UserError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror}") from None


def read_text(path: str, stdin: IO[str] | None) -> tuple[str, str]:
    """The text of file `path`, or of `stdin` for `-`; and the name it goes by in messages."""
    name = STDIN if path == "-" else path
    data = _stdin_bytes(stdin) if path == "-" else read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        raise _not_text(where, name) from None
    if "\0" in text:
        raise _not_text(f"zero byte at offset {text.index(chr(0))}", name)
    return text, name


def _not_text(where: str, name: str) -> UserError:
    path = Path(name)
    imports = path.suffix in MODELS
    hint = f"; 'irkit-translate {name} -o {path.stem}.mlir' imports such a model" if imports else ""
    return UserError(f"not MLIR text: {where}{hint}", name)


def _stdin_bytes(stdin: IO[str] | None) -> bytes:
    # Python has none where the shell closed it.
    if stdin is None:
        raise UserError("cannot read standard input: it is closed")
    # A StringIO has no bytes below it.
    buffer: IO[bytes] | None = getattr(stdin, "buffer", None)
    return stdin.read().encode() if buffer is None else buffer.read()


def weights_path(path: str) -> Path:
    """The weights file that belongs to an `.mlir` file."""
    return Path(path).with_suffix(".safetensors")


def read_weights(path: str) -> WeightStore:
    """The weights beside `path`; an empty store if there is no such file. Raises UserError."""
    from irkit.weights import WeightStore

    if path == "-" or not weights_path(path).exists():
        return WeightStore()
    try:
        return WeightStore.load(weights_path(path))
    except ArtifactError as error:
        raise UserError(str(error)) from None


def used_weights(module: ModuleOp) -> set[str]:
    """Names of the weights that `module` refers to."""
    from irkit.context import resource_name
    from irkit.dialects.task import BufferOp

    names = {resource_name(op) for op in module.walk()}
    buffers = (op for op in module.walk() if isinstance(op, BufferOp))
    names |= {op.source.data for op in buffers if op.source is not None}
    return {name for name in names if name is not None}


def is_special(path: Path) -> bool:
    """Whether a path is a device or a pipe: it is written into, never replaced, and nothing lies
    beside it."""
    return path.exists() and not path.is_file() and not path.is_dir()


def file_to_write(path: str) -> Path:
    """The path of a file to write. Raises UserError for one without a name."""
    if not Path(path).name:
        raise UserError(f"cannot write '{path}': it names no file")
    return Path(path)


def write_text(path: str, text: str) -> None:
    """Write a file at once: a reader sees the old content or the new. Raises UserError."""
    target = file_to_write(path)
    partial = target.with_name(target.name + ".partial")
    try:
        if is_special(target):
            target.write_text(text, encoding="utf-8")
            return
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write '{path}': {error.strerror}") from None


def write_weights(path: str, weights: WeightStore, names: set[str]) -> None:
    """Write those of `names` that `weights` has beside `path`; no file if there are none."""
    kept = weights.restricted_to(names)
    if not kept or is_special(file_to_write(path)):
        return
    try:
        kept.save(weights_path(path))
    except OSError as error:
        raise UserError(f"cannot write '{weights_path(path)}': {error.strerror}") from None
