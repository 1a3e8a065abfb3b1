"""What users are told: diagnostics, the places that they point to, and those that a test expects."""
