"""Groups of ranks: engines that do collective ops, and programs in parts with such ops between."""
