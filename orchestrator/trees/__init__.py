"""Trees: the only package that opens folders in which other users own the names, always by directory descriptors."""
