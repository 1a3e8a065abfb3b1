"""Run the guides of docs/ (PAGES): every command in them, and write what each prints beneath it.

    python tools/tour.py            run all and write the pages
    python tools/tour.py --check    exit code 1 if something prints other than a page says

Blocks marked `console` have commands behind `$ `, and below each what it printed; blocks marked
`python FILE` are written to that file. All run in one folder, in order.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("tour.md", "programs.md", "annotations.md", "dags.md", "training.md", "expressions.md")
BLOCK = re.compile(r"^```(console|python) ?([\w.]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def executed(page: str, folder: Path) -> str:
    """The page with what its commands print, run in `folder`."""

    def run(block: re.Match[str]) -> str:
        kind, file, body = block.groups()
        if kind == "console":
            body = "".join(_printed(line, folder) for line in body.splitlines() if line[:2] == "$ ")
        elif file:
            (folder / file).write_text(body)
        head = f"```{kind} {file}".rstrip()
        return f"{head}\n{body}```"

    return BLOCK.sub(run, page)


def _printed(line: str, folder: Path) -> str:
    """A command line with its output, standard error included."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        ["bash", "-c", line[2:]], cwd=folder, env=environment, capture_output=True, text=True
    )
    text = (run.stdout + run.stderr).strip("\n")
    return f"{line}\n{text}\n" if text else f"{line}\n"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Run the pages of docs/ that have commands.")
    parser.add_argument("--check", action="store_true", help="change nothing; compare")
    options = parser.parse_args()
    return max(_run(DOCS / name, options.check) for name in PAGES)


def _run(path: Path, check: bool) -> int:
    """Run one page; 1 if it is checked and differs."""
    page = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        new = executed(page, Path(folder))
    if "Traceback (most recent call last)" in new:
        raise SystemExit(
            f"a command of {path.name} failed:\n" + new.partition("Traceback")[2][:2000]
        )
    if check:
        lines = difflib.unified_diff(
            page.splitlines(), new.splitlines(), "page", "run", lineterm=""
        )
        print("\n".join(lines))
        return int(new != page)
    path.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
