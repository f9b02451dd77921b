# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a fleet command come from, with files and with programs of our own for sinfo and nodeset.
NUMAPROBE_NAMES names the program that prints the nodes (names_of.c)."""
import contextlib
import os
import select
import subprocess

import pytest

SINFO = """#!/bin/sh
echo "$@" >>"$CALLS"
case " $* " in
*" --partition=none "*) echo "sinfo: error: no such partition" >&2; exit 1 ;;
*" --states=idle "*) printf '>n1 idle\\n>n3 idle\\n>n3 idle\\n>n4 idle~\\n>n5 idle*\\n' ;;
*" --partition=nowhere "*) ;;
*" --partition=big "*|*" --partition=big,nowhere "*) printf '>n1 idle big*\\n>n2 alloc big*\\n' ;;
*" --partition=busy "*) printf '>n2 alloc busy\\n' ;;
*) printf '>n1 idle\\n>n2 alloc\\n>n2 alloc\\n>n3 idle\\n>n4 idle~\\n>n5 idle*\\n>n6 drain all DIMM\\nn7 idle all\\n\\n' ;;
esac
"""


@pytest.fixture(name="names")
def names_fixture(tmp_path):
    """names(nodes=, hostfile=, from_slurm=, idle=, groups=, command=, stdin=) -> (names, error, exit status)"""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    def names(nodes="", hostfile="", from_slurm="", idle=False, groups="", command="", stdin=""):
        done = subprocess.run([os.environ["NUMAPROBE_NAMES"], nodes, str(hostfile), from_slurm, "idle" if idle else "",
                               str(groups), command], input=stdin, text=True, capture_output=True, timeout=60,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")})
        return done.stdout.split(), done.stderr.strip(), done.returncode

    put("sinfo", SINFO)
    names.put = put
    names.calls = lambda: (tmp_path / "calls").read_text().splitlines()
    names.folder = tmp_path
    return names


def test_a_set(names):
    assert names("n[1-3]!n2") == (["n1", "n3"], "", 0)


def test_nothing_is_named(names):
    found, error, status = names()
    assert not found and status == 2 and error.startswith("nodes: ") and "--nodes=" in error and "--idle" in error


def test_the_set_is_empty(names):
    assert names("n1!n1") == ([], "nodes: the set has no nodes", 5)


def test_files(names):
    hosts = names.folder / "hosts"
    hosts.write_text("# rack 1\nn[1-2], n9 # two\n\n  login\r\nn2 n3")
    want = ["login", "n1", "n2", "n3", "n9"]
    assert names(f"^{hosts}") == (want, "", 0)
    assert names(hostfile=hosts) == (want, "", 0)
    assert names("n7", hostfile=hosts)[0] == ["login", "n1", "n2", "n3", "n7", "n9"]
    assert names("-", stdin=hosts.read_text()) == (want, "", 0)
    assert names(hostfile="-", stdin="n1\n")[0] == ["n1"]
    hosts.write_text("\ufeffn1\n")
    assert names(hostfile=hosts) == (["n1"], "", 0), "the mark of an editor begins the file"


def test_files_that_are_wrong(names):
    hosts = names.folder / "hosts"
    hosts.write_text("n1\nn[2-\n")
    assert names(hostfile=hosts) == ([], f'hostfile: {hosts}, line 2: "n[2-", character 5: a number is missing, as in n[1-4,8]', 2)
    hosts.write_bytes(b"n1\0n2")
    assert names(f"^{hosts}")[1:] == (f"nodes: {hosts} is no text: it has a NUL", 2)
    assert "cannot read /nowhere: No such file" in names("^/nowhere")[1]
    assert "standard input, line 1" in names("-", stdin="n1;n2\n")[1]
    assert "line 1" in names("-", stdin="n" * 65537)[1]


def test_a_file_stands_alone(names):
    """-w is joined by ',' where it is repeated."""
    hosts = names.folder / "hosts"
    hosts.write_text("# none\n")
    assert names("^")[1:] == ("nodes: the name of a file is missing behind '^'", 2)
    for nodes in (f"n1,^{hosts}", f"^{hosts},^{hosts}", f"^{hosts},n1"):
        assert names(nodes)[1:] == ("nodes: ^FILE must stand alone; --hostfile=FILE (hostfile) adds the nodes of a file", 2)
    assert names(f"^{hosts}")[1:] == ("nodes: the set has no nodes", 5)
    assert names(hostfile=hosts)[1:] == ("hostfile: the set has no nodes", 5)


def test_endless_input_is_refused(names):
    _, error, status = names(hostfile="/dev/zero")
    assert status == 2 and "more than 8388608 bytes" in error


def test_as_many_names_as_there_may_be(names):
    assert len(names("-", stdin="".join(f"n{i}\n" for i in range(65536)) * 2)[0]) == 65536
    assert "65536" in names("-", stdin="".join(f"n{i}\n" for i in range(65537)))[1]


def test_groups_of_the_file(names):
    groups = names.folder / "groups"
    groups.write_text("# name: set\nrack1: n[1-2]\nrack10: n9\nall : @rack1,@rack10!n2\nopen: n[1\nrack7: a\nrack7: b\n")
    assert names("@rack1", groups=groups) == (["n1", "n2"], "", 0)
    assert names("@all", groups=groups)[0] == ["n1", "n9"]
    assert names("x!@rack1", groups=groups)[0] == ["x"]
    assert names("@rack2", groups=groups)[2] == 5
    assert "group @open" in names("@open", groups=groups)[1]
    assert "@rack7 is on the lines 6 and 7" in names("@rack7", groups=groups)[1]
    groups.write_text("rack1: n1\nodd line\n")
    assert f'groups_file: {groups}, line 2: is not "NAME: SET"' == names("@rack1", groups=groups)[1]


def test_groups_of_the_command(names):
    names.put("groupnodes", '#!/bin/sh\n[ "$1" = "-g=rack1;" ] || { echo "no group $1" >&2; exit 3; }\nprintf "n[1-2]\\nn5\\n"\n')
    assert names("@rack1", groups="/nowhere", command="groupnodes -g=%s;") == (["n1", "n2", "n5"], "", 0)
    _, error, status = names("@rack2", groups="/nowhere", command="groupnodes -g=%s;")
    assert status == 5 and error == ("nodes: there is no group @rack2: groupnodes failed with status 3: no group -g=rack2;; "
                                     "/nowhere does not exist")
    assert "cannot start nothing: it is not installed" in names("@rack2", command="nothing %s")[1]
    assert "must have %s" in names("@rack2", command="groupnodes rack")[1]
    assert "must have no quotes" in names("@rack2", command="groupnodes '-g=%s'")[1]
    assert "must begin with the program" in names("@rack2", command="groups-%s -g=%s")[1]
    names.put("twice", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    assert names("@a", groups="/nowhere", command="twice x-%s-%s %s")[0] == ["a", "x-a-a"], "each %s is the group"
    assert "has more than 15 words or 1023 bytes" in names(f"@{'a' * 60}", groups="/nowhere", command=f"twice {'%s' * 20}")[1]


@pytest.mark.parametrize("form", ["@rakc1", "n1,@rakc1", "n1!@rakc1", "n1&@rakc1", "n1^@rakc1", "@rack1,@rakc1", "@more"])
@pytest.mark.parametrize("command", ["", "nodeset -e @%s"])
def test_a_group_that_is_not_there_is_an_error_wherever_it_stands(names, form, command):
    """ClusterShell's nodeset prints an empty line for it, and ends with status 0."""
    groups = names.folder / "groups"
    groups.write_text("rack1: n1\nrack2: n2\nmore: n1,@rakc1\n")
    hosts = names.folder / "hosts"
    hosts.write_text(f"n1\n{form}\n")
    names.put("nodeset", "#!/bin/sh\necho\n")
    for given in ({"nodes": form}, {"hostfile": hosts}, {"nodes": f"^{hosts}"}):
        found, error, status = names(groups=groups, command=command, **given)
        assert not found and status == 5 and "there is no group @rakc1: " in error, error
        assert "@rack1" in error and ("nodeset prints no nodes for it" in error) == bool(command), error
        assert error.endswith('; did you mean "@rack1"?') or "hosts, line 2: " in error, error


def test_a_file_of_groups_with_a_nul_is_refused(names):
    groups = names.folder / "groups"
    groups.write_bytes(b"a: n1\0\nb: n2\n")
    assert names("@b", groups=groups)[1:] == (f"groups_file: {groups} is no text: it has a NUL", 2)


def test_a_program_that_prints_a_nul_is_refused(names):
    for name, options in ("sinfo", {"from_slurm": "*"}), ("nodeset", {"nodes": "@a", "command": "nodeset %s"}):
        names.put(name, "#!/bin/sh\nprintf '>n1 idle\\n\\0>n2 idle\\n'\n")
        _, error, status = names(**options)
        assert (error.split(": ")[1:], status) == ([f"{name} printed a NUL, which no text has"], 2)


def test_the_groups_that_there_are_stand_in_the_error(names):
    groups = names.folder / "groups"
    groups.write_text("".join(f"row{i}: n{i}\n" for i in range(100)))
    _, error, _ = names("n1,@xyz", groups=groups)
    assert error == f"nodes: there is no group @xyz: {groups} has @row0, @row1, @row2, @row3, @row4, @row5, @row6, @row7, 92 more"
    groups.write_text(f"{'x' * 99}: n1\na: n2\n")
    assert names("@xyz", groups=groups)[1] == f"nodes: there is no group @xyz: {groups} has 2 groups"
    groups.write_text("a: n1\n: n2\n")
    assert names("@a", groups=groups)[1] == f'groups_file: {groups}, line 2: is not "NAME: SET"'
    groups.write_text("# none yet\n")
    assert names("@xyz", groups=groups)[1] == f"nodes: there is no group @xyz: {groups} has no groups"
    assert names("@xyz", groups="/nowhere")[1] == "nodes: there is no group @xyz: /nowhere does not exist"
    assert names("@xyz")[1] == "nodes: there is no group @xyz: no file of groups is set"


def test_each_of_many_groups_is_found(names):
    """In a file that is not sorted. A name that stands twice is an error where it is used."""
    groups, hosts = names.folder / "groups", names.folder / "hosts"
    groups.write_text("".join(f"g{i * 7 % 1000}: n{i * 7 % 1000:03}\n" for i in range(1000)) + "twice: a\ntwic: b\ntwice: c\n")
    hosts.write_text("".join(f"@g{i}\n" for i in range(1000)))
    assert names(hostfile=hosts, groups=groups) == ([f"n{i:03}" for i in range(1000)], "", 0)
    assert names("@twic", groups=groups)[0] == ["b"]
    assert names("@twice", groups=groups)[1] == f"groups_file: {groups}: @twice is on the lines 1001 and 1003"


def test_a_group_of_the_file_may_be_empty(names):
    """It is there, and somebody wrote that it has no nodes."""
    groups = names.folder / "groups"
    groups.write_text("down:\n")
    assert names("n[1-2]!@down", groups=groups) == (["n1", "n2"], "", 0)


def test_a_group_of_a_named_source_may_be_empty(names):
    """nodeset prints the same for a state of Slurm's that no node is in."""
    names.put("nodeset", "#!/bin/sh\necho\n")
    assert names("n[1-2]!@st:down", command="nodeset -e @%s") == (["n1", "n2"], "", 0)
    assert "no group @down" in names("n[1-2]!@down", command="nodeset -e @%s")[1]


def test_the_file_goes_before_the_command(names):
    groups = names.folder / "groups"
    groups.write_text("rack1: n1\n")
    assert names("@rack1", groups=groups, command="/nonexistent %s")[0] == ["n1"]


def test_a_command_that_prints_without_end(names):
    names.put("groupnodes", "#!/bin/sh\nyes n1\n")
    _, error, status = names("@rack1", command="groupnodes %s")
    assert status == 2 and "groupnodes printed more than 65536 bytes" in error


def test_a_program_that_does_not_end(names):
    """It is ended with what it started, which holds the pipe open."""
    names.put("groupnodes", f"#!/bin/sh\ncat <{names.folder}/fifo &\necho $! >{names.folder}/pid\nwait\n")
    os.mkfifo(names.folder / "fifo")
    end = os.open(names.folder / "fifo", os.O_RDWR)
    _, error, status = names("@rack1", command="groupnodes %s")
    os.close(end)
    assert status == 1 and "groupnodes has not ended within 10 s" in error
    with contextlib.suppress(ProcessLookupError):  # gone already
        ended = os.pidfd_open(int((names.folder / "pid").read_text()))
        assert select.select([ended], [], [], 60)[0], "what it started is still running"
        os.close(ended)


def test_nodes_of_slurm(names):
    assert names(from_slurm="*") == (["n1", "n2", "n3", "n5", "n6"], "", 0), "those that are powered off are left out"
    assert names(from_slurm="big")[0] == ["n1", "n2"]
    assert names("n7", from_slurm="big")[0] == ["n1", "n2", "n7"]
    assert names.calls() == ["-h -N -o >%N %t %P %E"] + 2 * ["-h -N -o >%N %t %P %E --partition=big"]
    _, error, status = names(from_slurm="none")
    assert status == 1 and error == "from_slurm: sinfo failed with status 1: sinfo: error: no such partition"


@pytest.mark.parametrize("given", [{"from_slurm": "nowhere"}, {"from_slurm": "big,nowhere"}, {"nodes": "n1", "from_slurm": "nowhere"},
                                   {"from_slurm": "nowhere", "idle": True}, {"from_slurm": "big,nowhere", "idle": True}])
def test_a_partition_of_which_sinfo_lists_nothing(names, given):
    """sinfo ends with status 0 for a partition that there is not."""
    found, error, status = names(**given)
    assert (found, status) == ([], 5)
    assert error == "from_slurm: sinfo lists no node of a partition \"nowhere\"; 'sinfo -s' has the partitions"


def test_idle_nodes(names):
    assert names(idle=True)[0] == ["n1", "n3"]
    assert names(from_slurm="*", idle=True)[0] == ["n1", "n3"]
    assert len(names.calls()) == 2, "one call each"
    assert names("n[2-9]", idle=True)[0] == ["n3"]
    assert names("n9", from_slurm="big", idle=True)[0] == ["n1"]
    assert names("n[7-9]", idle=True) == ([], "idle: Slurm lists none of the named nodes as idle", 6)


def test_no_node_is_idle(names):
    names.put("sinfo", "#!/bin/sh\n")
    assert names(idle=True) == ([], "idle: Slurm lists no idle node", 6)
    names.put("sinfo", SINFO)
    assert names(from_slurm="busy", idle=True) == ([], "idle: Slurm lists no idle node in partition busy", 6)


def test_what_sinfo_prints_is_checked(names):
    names.put("sinfo", "#!/bin/sh\nprintf '%s\\n' '>-oProxyCommand=x idle'\n")
    assert names(idle=True)[1].startswith('idle: sinfo printed "-oProxyCommand=x": a node name has')
    names.put("sinfo", "#!/bin/sh\necho '>lonely'\n")
    assert 'sinfo printed "lonely", which is no node and state' in names(idle=True)[1]
    names.put("sinfo", "#!/bin/sh\necho n1 idle\n")
    assert 'sinfo printed "n1", which is no line of ours' in names(idle=True)[1]


def test_a_program_that_is_not_there(names):
    (names.folder / "bin" / "sinfo").unlink()
    names_path = os.environ["PATH"]
    os.environ["PATH"] = "/nonexistent"
    try:
        _, error, status = names(idle=True)
    finally:
        os.environ["PATH"] = names_path
    assert status == 1 and error == "idle: cannot start sinfo: it is not installed"
