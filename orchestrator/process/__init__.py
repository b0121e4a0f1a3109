"""The only package that starts programs: two executors (Reader, Writer), no shell, and a stop that always ends."""
