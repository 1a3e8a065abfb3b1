"""Pictures of what irkit does: schedules, planned and measured, and pipelines pass by pass."""
