"""Times of rTasks, measured on the device at hand and kept."""
