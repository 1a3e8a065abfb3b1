"""Arrays for a module: what its entry point takes and gives, read from files or drawn at random."""
