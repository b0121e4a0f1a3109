"""One folder per way of copying, all of the same shape; `shelf` finds them, `contract` is what they promise."""
