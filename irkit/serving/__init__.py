"""Programs where others serve them: within scikit-learn, and in the processes of an engine of batches."""
