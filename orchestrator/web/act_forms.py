"""Forms that ask for an act: read from the body of a POST, with the page's own token, and nothing that is not in the closed list."""

import secrets
from urllib.parse import parse_qsl, quote, urlencode

from orchestrator.domain.act import ActRequest, ActVerb, encode_request, parse_path_below, parse_request
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.views.point_page import point_address

FORM_TYPE = "application/x-www-form-urlencoded"
LONGEST_FORM = 64 << 10  # bytes
_MOST_FIELDS = 64
_NAMES = ("job", "disk", "point", "span")


class BadForm(Exception):
    """A form that asks for nothing that can be asked for. The message says why."""


class FormToken:
    """The secret that is in each form of ours, for as long as this server lives.

    Why besides the check of where a request comes from: an old browser, or a proxy that drops `Origin`, says nothing of it.
    """

    def __init__(self) -> None:
        self.value = secrets.token_urlsafe(24)

    def fits(self, given: str) -> bool:
        """Return True for the token of this server."""
        return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), self.value.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class ActForm:
    """A request from a form, and the page from which it came."""

    request: ActRequest
    front: bool

    def address(self, act: int | None) -> str:
        """Return the page that shows what becomes of it."""
        return f"/acts/{act}" if self.request.verb is ActVerb.RESTORE else f"{self.origin}#asked"

    @property
    def origin(self) -> str:
        """Return the page with its button."""
        request = self.request
        if request.verb is ActVerb.RESTORE:
            ticked = urlencode([("take", show_name(path)) for path in request.paths])
            return f"{point_address(request.job, request.point)}?{ticked}"
        if self.front:
            return "/"
        return "/disks" if request.disk else job_address(request.job)


def job_address(name: str) -> str:
    """Return the address of a job's page."""
    return f"/jobs/{quote(name, safe='')}"


def parse_act_form(body: bytes, token: FormToken, user: str) -> ActForm:
    """Parse the body of a POST. Raises: BadForm."""
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=_MOST_FIELDS
        )
    except (ValueError, UnicodeError):
        raise BadForm("this is no form of ours") from None
    single = dict(fields)
    if not token.fits(single.get("token", "")):
        raise BadForm(
            "this page was open while the status page was started again: reload it, and press the button once more"
        )
    try:
        verb = ActVerb(single.get("act", ""))
    except ValueError:
        raise BadForm("there is no such act") from None
    try:
        paths = tuple(parse_path_below(value) for name, value in fields if name == "path")
        names = {name: single[name] for name in _NAMES if single.get(name)}
        asked = ActRequest(verb=verb, user=user, paths=paths, **names)
        # Checked as the daemon does it: what it would refuse is said here in the same words.
        return ActForm(request=parse_request(encode_request(asked)), front=single.get("from") == "front")
    except ValueError as error:
        raise BadForm(f"this cannot be asked for: {error}") from None
