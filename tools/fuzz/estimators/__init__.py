"""Random models of scikit-learn, beside the library itself. See `attempt.py`."""
