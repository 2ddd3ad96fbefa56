"""Pure functions on probability vectors; the compiled kernels live behind them."""
