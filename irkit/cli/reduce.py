"""The program `irkit-reduce`."""

import sys

from irkit.driver.tools.reduce import ReduceTool


def main() -> None:
    """Run irkit-reduce on the command line's arguments and exit."""
    sys.exit(ReduceTool().main(sys.argv[1:]))


if __name__ == "__main__":
    main()
