"""An owner of a dataset below the source, with all that `zfs allow` may give her: what others have is copied whatever she does."""

import pytest

from tests.lab.common import Machine

pytestmark = pytest.mark.timeout(900)
HERS, COPY = "tank/photos/eve", "vault/copies/photos"
RIGHTS = "snapshot,destroy,rename,mount,hold,release,userprop,rollback"


def test_an_owner_holds_up_no_other_dataset_and_takes_no_point(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name, "200M")
    master.sh(f"""set -e; useradd -m eve; zfs create vault/copies; zfs create tank/photos; zfs create tank/photos/ann; zfs create {HERS}
        zfs allow eve {RIGHTS} {HERS}; zfs snapshot -r tank/photos@s0""")
    job = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n[retry]\nattempts = 1\n'
    master.job("photos", job, targets='[place.vault]\ndataset = "vault/copies"\n')
    master.kitted("photos")
    assert master.poolferry("run", "photos").code == 0
    attacks = (
        (f"for s in $(zfs list -H -d 1 -t snapshot -o name {HERS}); do zfs destroy $s; done", "true", False),
        (f"zfs set poolferry:flags=Lceb {HERS}", f"zfs inherit poolferry:flags {HERS}", True),
    )
    for turn, (attack, undo, named) in enumerate(attacks, 1):
        held = set(master.sh("zfs list -Hr -t snapshot -o guid vault").lines)
        master.sh(attack, user="eve")
        master.sh(f"zfs snapshot -r tank/photos@s{turn}")
        ran = master.poolferry("run", "photos", "--json")
        assert (ran.code, HERS in ran.json["why"]) == ((1, True) if named else (0, False)), ran
        assert not named or undo in str(ran.json), "the hint as it is printed"
        for name in ("", "/ann"):
            assert f"{COPY}{name}@s{turn}" in master.sh(f"zfs list -Hr -t snapshot -o name {COPY}").lines, (attack, ran)
        assert held <= set(master.sh("zfs list -Hr -t snapshot -o guid vault").lines), attack
        master.sh(undo, user="eve")
    assert master.poolferry("run", "photos").code == 0
    assert f"{COPY}/eve@s{len(attacks)}" in master.sh(f"zfs list -Hr -t snapshot -o name {COPY}").lines
