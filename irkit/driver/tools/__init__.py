"""The main programs: irkit-opt, irkit-run, irkit-translate; their arguments and exit codes."""
