"""Trees: the only door into folders where others own the names; everything goes by directory descriptors."""
