"""What an emitted CUDA module says of itself, read from its text without importing Numba."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irkit.errors import ArtifactError
from irkit.schedule.library_call import LibraryCall
from irkit.schedule.tables import (
    Appended,
    Carried,
    Mail,
    Moving,
    Operand,
    Pinned,
    Port,
    Program,
    Published,
    Ran,
    Repeated,
    TensorMap,
)
from irkit.syntax_trees import in_one_thread


@dataclass(frozen=True)
class LaunchFacts:
    """How the entries are launched.

    `arch` is what machine code is made for, "sm_90a"; `threads` a block; `shared_bytes` of dynamic shared
    memory of `persistent` and `wave`, which there is where `waves` says so: elsewhere `persistent` runs those
    too; `record_words` a record takes; per rOperator, its `scratch` and
    whether its rTasks are shares of the `batch`. `places`: slices move with the turns of loops, and `place`
    puts them there in modes `per-wave` and `per-op`. `library`: the fields of the `LibraryCall` that stands
    for an rOperator's own kernel in mode `per-op`, by its number, where there is one. `spread`: how many
    blocks at most share an rTask in that mode, `side_by_side` how many of them are to fit on a
    multiprocessor; `clusters`: how many of them must, as a cluster;
    `rows_at_once`: how many rows of a batch a block is given in it. Of each nothing where it is one for all.
    `stage`: of a program that carries values, the word of a record that says what, the byte of shared memory
    where they are staged, and the fields of `Stage`.
    `early`: an rOperator's kernel of mode `per-op` may begin while the one queued before it still runs.
    `any_values`: whatever the inputs' values, a run of them ends, and touches only what is its own.
    """

    arch: str
    threads: int
    shared_bytes: int
    record_words: int
    scratch: tuple[int, ...]
    batch: tuple[bool, ...]
    places: bool = False
    waves: bool = False
    spread: tuple[int, ...] = ()
    side_by_side: tuple[int, ...] = ()
    stage: tuple[int, ...] = ()
    rows_at_once: tuple[int, ...] = ()
    clusters: tuple[int, ...] = ()
    early: bool = False
    any_values: bool = False
    library: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])

    @property
    def calls(self) -> dict[int, LibraryCall]:
        """`library` as what it says."""
        return {number: LibraryCall(**facts) for number, facts in self.library.items()}

    @property
    def entries(self) -> list[str]:
        """Names of the entry kernels."""
        wave, place = ["wave"] * self.waves, ["place"] * self.places
        return ["persistent", *wave, *place, *(f"op_{i}" for i in range(len(self.scratch)))]


def read_facts(source: str) -> tuple[Program, LaunchFacts]:
    """PROGRAM and LAUNCH of a module's text. Raises ArtifactError if it has none."""
    names: dict[str, Any] = {
        "Program": Program,
        "Port": Port,
        "Operand": Operand,
        "Appended": Appended,
        "Pinned": Pinned,
        "Carried": Carried,
        "Mail": Mail,
        "Published": Published,
        "Moving": Moving,
        "Ran": Ran,
        "Repeated": Repeated,
        "TensorMap": TensorMap,
        "__builtins__": {},
    }
    found: dict[str, Any] = {}
    for statement in in_one_thread(lambda: ast.parse(source)).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        name = statement.targets[0].id
        if name in ("PROGRAM", "PLANS", "LAUNCH"):
            code = compile(ast.Expression(statement.value), "<module>", "eval")
            found[name] = names[name] = eval(code, names)
    if not {"PROGRAM", "LAUNCH"} <= found.keys():
        raise ArtifactError("the module is no emitted CUDA program: PROGRAM or LAUNCH is missing")
    program: Program = found["PROGRAM"]
    program = program.planned(found.get("PLANS", (program,)))
    return program, LaunchFacts(**found["LAUNCH"])
