"""What irkit's tools share: diagnostics, registries, pipelines, instruments, and the main programs."""
