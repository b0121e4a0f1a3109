"""A mail, through this machine's sendmail or straight to a mail server."""

import os
import smtplib
import ssl
import tempfile
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, make_msgid
from typing import Any

from orchestrator.domain.notice import DeliveryFailed, MailChannel, Message
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.notices.transport import OpenConnections, SenderContext, read_secret, to_many_lines, to_one_line
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest

_SUBJECT = 180


def send_mail(channel: MailChannel, message: Message, means: SenderContext, lines: OpenConnections) -> None:
    """Pass the mail on for delivery. Raises: DeliveryFailed."""
    letter = compose_mail(channel, message, means)
    if channel.smtp:
        _by_smtp(channel, letter, means, lines)
    else:
        _by_sendmail(channel, letter, means)


def compose_mail(channel: MailChannel, message: Message, means: SenderContext) -> EmailMessage:
    """Build the mail; its headers show that no person wrote it, so that no vacation program answers."""
    letter = EmailMessage(policy=default.clone(cte_type="7bit"))
    letter["From"], letter["To"] = channel.sender or f"poolferry@{means.host}", ", ".join(channel.to)
    letter["Subject"] = to_one_line(message.subject)[:_SUBJECT]
    letter["Date"], letter["Message-ID"] = format_datetime(message.made_at), make_msgid(domain=means.host)
    letter["Auto-Submitted"] = "auto-generated"
    letter["X-Poolferry"] = message.kind.value
    letter.set_content(to_many_lines(message.body))
    return letter


def _by_sendmail(channel: MailChannel, letter: EmailMessage, means: SenderContext) -> None:
    sender = ("-f", channel.sender) if channel.sender else ()
    # -i: a line with a single dot does not end the mail
    command = Command(argv=("sendmail", "-i", *sender, "--", *channel.to), effect=Effect.WRITES)
    with tempfile.NamedTemporaryFile(prefix="poolferry-mail-") as file:
        file.write(bytes(letter))
        file.flush()
        stop = StopRequest(deadline=Seconds(means.within * 0.9), because="sendmail took too long")
        result = Writer().stream(Pipeline(stages=(command,), reads=os.path.abspath(file.name)), stop=stop)
    if result.well:
        return
    code = result.exits[0]
    if code == 127:
        raise DeliveryFailed("this machine has no sendmail: install a mail system, or set smtp = HOST:PORT")
    how = "took too long" if result.stopped else f"exit {code}"
    raise DeliveryFailed(f"sendmail: {how}: {to_one_line(' '.join(result.last_output))[-500:]}")


def _by_smtp(channel: MailChannel, letter: EmailMessage, means: SenderContext, lines: OpenConnections) -> None:
    told = channel.smtp or ""
    try:
        with _server(channel, told, means, lines) as server:
            if channel.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if channel.user and channel.password_file:
                server.login(channel.user, read_secret(channel.password_file, means))
            refused = server.send_message(letter, from_addr=letter["From"], to_addrs=list(channel.to))
    except (OSError, ValueError) as error:  # every SMTPException is an OSError
        raise DeliveryFailed(f"{told}: {to_one_line(str(error)) or type(error).__name__}") from error
    if refused:
        raise DeliveryFailed(f"{told}: refused for {', '.join(refused)}; the others have it")


def _server(channel: MailChannel, told: str, means: SenderContext, lines: OpenConnections) -> smtplib.SMTP:
    """Connect to the server and greet it, over a connection that can be cut."""

    class PlainSmtp(smtplib.SMTP):
        def connect(self, *to: Any, **more: Any) -> tuple[int, bytes]:
            lines.hold(lambda: self.sock)
            return super().connect(*to, **more)

    class TlsSmtp(smtplib.SMTP_SSL):
        def connect(self, *to: Any, **more: Any) -> tuple[int, bytes]:
            lines.hold(lambda: self.sock)
            return super().connect(*to, **more)

    host, port = told.rsplit(":", 1) if told.rpartition("]")[2].count(":") else (told, "")
    usual = {"tls": 465, "starttls": 587}.get(channel.security, 25)
    where, ours = (host.strip("[]"), int(port or usual)), means.host
    if channel.security == "tls":
        trust = ssl.create_default_context()
        return TlsSmtp(*where, timeout=means.within, context=trust, local_hostname=ours)
    return PlainSmtp(*where, timeout=means.within, local_hostname=ours)
