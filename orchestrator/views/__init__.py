"""Values as lines, JSON and numbers: pure, for the terminal and for pages alike. A view says beside it what it draws."""
