"""Values as lines, JSON and numbers, for the terminal and for pages. Each view declares the values that it shows beside it."""
