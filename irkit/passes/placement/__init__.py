"""Where the regions of a program run: what they cost on each device, and a cut over all of it."""
