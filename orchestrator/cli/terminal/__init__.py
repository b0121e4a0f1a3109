"""Modules that are no commands: reading arguments, and output. No command name is looked up here."""
