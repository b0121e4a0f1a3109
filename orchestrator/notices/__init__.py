"""The sending of messages: one sender per kind of channel, and their shared parts.

sending   the way of each kind, within a time     letter    a mail: sendmail or SMTP
web       ntfy, webhook, ping: one POST           wide      whatever Apprise reaches
means     the machine's name, secrets, patience

What is told, when and to whom is decided elsewhere (planners/noticing), and what is not delivered waits in the history.

Why not the executables in hooks/, which also mail, push and ping: those speak of one run in the words of a hook's event,
and must run alone, without this package; here it is the state of all jobs, and the same message may be tried for days.
Both keep the same manners, and the tests hold both against the same peers: a password only through TLS, no redirect
followed with a token, no secret in an error, no header forged by a name.
"""
