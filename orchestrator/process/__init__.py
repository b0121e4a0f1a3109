"""The only room that starts programs: two keys (Reader, Writer), no shell, and a stop that always ends."""
