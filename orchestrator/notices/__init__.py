"""Sending of messages: one sender per kind of channel, and their shared parts.

send             the sender of each kind, with a time limit
mail             a mail, by sendmail or SMTP
http_channel     ntfy, webhook and ping: one POST
apprise_channel  all services that Apprise reaches
transport        the machine's name, secrets, time limits

`planners/notifications.py` decides which messages are sent, when and to whom; undelivered ones wait in the history.

Why not the executables in hooks/, which also mail, push and ping: those report one run by the variables of a hook's event, and
must run alone, without this package; here the subject is the state of all jobs, and a message may be retried for days. Both
follow the same rules, and the tests check both against the same peers: a password only through TLS, no redirect followed with a
token, no secret in an error, no header forged by a name.
"""
