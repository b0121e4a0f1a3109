"""The only package that reads TOML: it returns places and jobs, or all mistakes together.

Why no validation library: a run that finds nothing to do may cost 85 ms beyond the survey itself (100,000 files), and the
import of pydantic 2 alone costs 90 to 120 ms of it (Python 3.11, whole process); msgspec is quick and reports only the first
mistake. So the keys are declared as dataclasses (`domain.job.config_key`), and one small loop over them parses, finds every
mistake with its line, and writes the JSON Schema.
"""
