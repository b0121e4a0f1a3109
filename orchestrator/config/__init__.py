"""The only room that reads TOML: places and jobs come out, or all mistakes at once. Pure."""
