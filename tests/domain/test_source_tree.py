"""A source of one folder, and one of several below the root of a machine."""

from orchestrator.domain.place import Host, Location
from orchestrator.domain.source_tree import SourceTree, join_folders

NAS = Host(name="nas", user="root")


def test_one_folder_is_all_of_its_root() -> None:
    tree = SourceTree(root=Location(path="/srv/photos"))
    assert (tree.folders, tree.above, tree.tops, str(tree)) == ((tree.root,), (), (), "/srv/photos")
    assert [tree.group_of(path) for path in (b"a/b/c", b"a", b"a/b")] == [b"a", b"", b"a"]


def test_several_folders_keep_their_whole_paths() -> None:
    names = ("/srv/www/site", "/home", "/srv/mail")
    tree = join_folders([Location(path=name, host=NAS) for name in names])
    assert (tree.root, tree.parts) == (Location(path="/", host=NAS), ("srv/www/site", "home", "srv/mail"))
    assert (tree.above, tree.tops[:2]) == (("srv", "srv/www"), (b"srv", b"srv/www"))
    assert str(tree) == "ssh://root@nas/srv/www/site, ssh://root@nas/home, ssh://root@nas/srv/mail"
    paths = (b"srv/www/site/a", b"home/u/x", b"home", b"homes/x", b"srv/other")
    assert [tree.group_of(path) for path in paths] == [b"srv/www/site", b"home", b"", b"", b""]
