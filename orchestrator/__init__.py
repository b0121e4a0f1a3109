"""poolferry copies data between pools and verifies that it arrived.

cli, daemon        text in, text out: the command line and the daemon
views              values as tables, lines and JSON
app                use cases of commands, timers and the daemon
runner             one run, from due to done
engines            one package per way of copying: survey, plan, confirm, explain
disks, verify      removable disks; checksums and manifests
config, schedule   TOML files; timers
history, notices   SQLite; messages to people and monitors
process, trees     the only packages that start programs; that open foreign folders
planners, domain   decisions and values, without side effects
"""

__version__ = "0.1.0"
