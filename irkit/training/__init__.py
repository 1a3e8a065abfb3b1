"""Training: losses, optimisers, schedules of rates, and steps that are one program each.

Losses, optimisers and layers are functions of NumPy arrays: they run as they are, and are traced where a
traced function calls them.
"""
