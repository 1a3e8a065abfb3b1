"""`irkit.Scorer`: a function of one batch of rows, for engines that have batches in many processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irkit.errors import UnsupportedError
from irkit.runtime.program import CompiledProgram
from irkit.serving.kept import KeptProgram


class Scorer:
    """What a program, or one of its methods, gives for a batch: a function that may be pickled.

    `program`: a compiled program, whose files go with the pickle, or the path of a saved one that every
    process can read, which alone goes then. Each process loads it once, at the first batch. `method`:
    "predict", "predict_proba", "transform" or another that the program has; by default the program itself is
    called. Any number of threads may call it.

    ```python
    x.map_blocks(irkit.Scorer("model.irkit", "predict"), drop_axis=1, dtype=np.int64)  # a Dask array
    frame.map_partitions(irkit.Scorer("model.irkit", "predict"))  # a Dask data frame
    ```

    Raises ArtifactError where there is no such file, UnsupportedError for a program with state, for one that
    cannot be saved and, once it is loaded, for a method that it has not.
    """

    def __init__(self, program: CompiledProgram | Path | str, method: str | None = None) -> None:
        self.method = method
        self._kept = KeptProgram(program)
        if isinstance(program, CompiledProgram):
            self._check(program)

    @property
    def program(self) -> CompiledProgram:
        """The program, loaded if this process does not have it yet."""
        return self._kept.program

    def _check(self, program: CompiledProgram) -> None:
        if self.method is not None and self.method not in program.methods:
            known = ", ".join(program.methods) or "none"
            raise UnsupportedError(f"method '{self.method}' of this model; it has {known}")

    def __call__(self, X: Any) -> Any:
        """Results for rows `X`, an array or a data frame. Raises InvalidInputError."""
        program = self._kept.program
        if self.method is None:
            return program(X)
        self._check(program)
        return getattr(program, self.method)(X)

    def __repr__(self) -> str:
        return f"Scorer({self._kept}, method={self.method!r})"
