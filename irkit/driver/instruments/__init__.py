"""What may watch a pipeline, one instrument a file, and which of them a run asks for."""
