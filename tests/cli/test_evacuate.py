"""`poolferry evacuate`: a pool without sources is refused, and what is not whole elsewhere is never called so."""

from tests.ferry import Ferry


def test_a_pool_is_known_by_its_jobs_and_what_fails_is_not_whole(ferry: Ferry) -> None:
    source = ferry.job()
    (ferry.config / "targets.toml").write_text(
        (ferry.config / "targets.toml").read_text() + '[place.lake]\ndataset = "lake/copies"\n'
    )
    (ferry.config / "jobs" / "mail.toml").write_text(
        'engine = "zfs"\nsource = "no-such-tank/mail"\ntarget = "lake"\n[retry]\nattempts = 1\n'
    )
    strange = ferry.run("evacuate", "lake")
    assert (strange.code, strange.out) == (2, "")
    assert "no job's source lies on a pool lake of this machine; sources lie on: no-such-tank" in strange.err
    told = ferry.run("evacuate", "no-such-tank")
    assert told.code == 5, told
    mail, more, summary = told.out.splitlines()
    assert mail.startswith("mail (of no-such-tank/mail): NOT whole at lake: "), told
    assert "poolferry restore pool no-such-tank --plan" in more
    assert summary == "0 of 1 job of no-such-tank are whole elsewhere; nothing was removed but by the jobs' own rules"
    assert not ferry.target().exists(), f"{source} lies on no pool of this name"
    found = ferry.run(_POOLFERRY_COMPLETE="bash_complete", COMP_WORDS="poolferry evacuate no-", COMP_CWORD="2")
    assert found.out.strip() == "plain,no-such-tank"
