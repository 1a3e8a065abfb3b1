"""Where everything meets: `irkit.compile`, the tools, and what they share, a package for each concern."""
