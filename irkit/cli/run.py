"""The program `irkit-run`."""

import sys

from irkit.driver.tools.run import RunTool


def main() -> None:
    """Run irkit-run on the command line's arguments and exit."""
    sys.exit(RunTool().main(sys.argv[1:]))


if __name__ == "__main__":
    main()
