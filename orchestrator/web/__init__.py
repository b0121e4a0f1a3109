"""The status page: routes and templates over `app` and `views`, the same values as the command line shows.

Who may read. History, notes of progress and configuration are root's (0700), and stay so: no copy of them is written for anybody, and
no bit of their modes is loosened. `poolferry web` reads them, read-only, as whoever starts it. The unit poolferry-web.service starts it
as a user of its own that is there only while it runs. It has one capability, to read what is not its own (CAP_DAC_READ_SEARCH), no network,
none of the system calls that open a file by its handle, and a file system that is read-only, in which home directories, /etc, /var, /srv,
/mnt, /media and /opt are empty but for the configuration and the state directory without its key. So whoever takes the process over reads
what the page shows, and targets that lie elsewhere, and writes nothing.

Why no copy by root after each run: it would be old while a run goes on, and would need a second place with the same secrets. Why not all
through the daemon's socket: the daemon may be a timer or cron, and the page must say so when none runs.

Acts. Buttons are requests to the daemon over its control socket (`daemon/control_socket.py`), which takes each apart again and knows a
closed list of them (`domain/act.py`); this process itself starts and changes nothing.

Who may look. The socket is 0660: its group, or `ssh -L`. TCP only on request, by a link that is good once, for a cookie.
"""
