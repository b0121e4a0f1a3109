"""The libraries of the pages, which are an extra: only this command needs them."""

from importlib.util import find_spec

from orchestrator.domain.errors import OrchestratorError


def require_libraries() -> None:
    """Check that the libraries are there. Raises: OrchestratorError with what installs them."""
    lacking = [name for name in ("starlette", "uvicorn", "jinja2") if find_spec(name) is None]
    if lacking:
        raise OrchestratorError(
            f"the status page needs {' and '.join(lacking)}",
            hint='pip install "poolferry[web]", or apt install python3-starlette python3-uvicorn python3-jinja2',
        )
