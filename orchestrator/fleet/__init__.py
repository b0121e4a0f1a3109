"""The only package that speaks to PostgreSQL: the centre of many hosts, which gathers, compares, lends permits and passes orders on.

connection   the door: one place that connects, with TLS, keepalives and a limit of time on every wait
schema       the tables of the centre: numbered files in `migrations`, applied in order
enrolment    hosts and their roles: invited, joined, gone
ledger       what hosts tell: stored in batches, each once       beats   their signs of life
tickets      which of two copies of one machine speaks for the host
overview     what is asked of the centre: silent, late, what ran
credentials  the file in the state directory that says who this host is at the centre

A host's run is never in anybody else's hands: nothing here is imported where no [fleet] is declared, and no run waits for an
answer of the centre.
"""
