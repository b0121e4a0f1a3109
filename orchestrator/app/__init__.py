"""Where people and machines knock: text in, text out."""
