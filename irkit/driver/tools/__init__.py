"""The main programs: irkit-opt, irkit-run, irkit-translate, irkit-reduce; their arguments and exit codes."""
