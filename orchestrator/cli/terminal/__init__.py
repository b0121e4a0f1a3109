"""What is no command: how words are read and what is shown. Nothing here is found by a name that somebody types."""
