# SPDX-License-Identifier: Apache-2.0
"""Forwarded sockets: with an ssh of our own that fails in every way, and with a real sshd on loopback.
NUMAPROBE_TUNNELS names the program that opens tunnels (tunnels.c), NUMAPROBE_SOURCE the source."""
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

SOURCE = pathlib.Path(os.environ["NUMAPROBE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "fakes"))
import sshd  # noqa: E402

TUNNELS = os.environ["NUMAPROBE_TUNNELS"]


class Fake:
    def __init__(self, folder):
        self.folder = folder
        self.run_dir = folder / "run"
        self.run_dir.mkdir(mode=0o700)
        self.env = {**os.environ, "FAKE_SSH": str(folder), "XDG_RUNTIME_DIR": str(self.run_dir)}
        self.program = str(SOURCE / "tests" / "fakes" / "fake_ssh.py")

    def words(self, nodes, at_once, connect_s, hold, program):
        return [TUNNELS, program or self.program, str(at_once), str(connect_s), "/run/there.sock", hold, *nodes]

    def open(self, *nodes, at_once=8, connect_s=60, hold="", program=None):
        """{node: "ready …", "failed …"}"""
        done = subprocess.run(self.words(nodes, at_once, connect_s, hold, program), text=True, capture_output=True, timeout=100,
                              env=self.env, stdin=subprocess.DEVNULL if hold != "hold" else None, check=True)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    @contextlib.contextmanager
    def held(self, *nodes):
        with subprocess.Popen(self.words(nodes, 8, 60, "hold", None), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=self.env) as p:
            yield p

    def calls(self):
        return {int(p.name.split(".")[1]): p.read_text().split("\n") for p in self.folder.glob("calls.*")}

    def left(self):
        return sorted(p.name for p in self.run_dir.iterdir())


@pytest.fixture(name="fake")
def fake_fixture():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are too long for sockets
        yield Fake(pathlib.Path(folder))


def ends(pid):
    """Waits until the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        ended = os.pidfd_open(pid)
        assert select.select([ended], [], [], 60)[0], f"{pid} is still running"
        os.close(ended)


def test_sockets_of_nodes(fake):
    assert fake.open("ok1", "ok2", "ok3") == {f"ok{i}": f"ready hello from ok{i}" for i in (1, 2, 3)}
    assert fake.left() == []
    for pid in fake.calls():
        ends(pid)


def test_what_ssh_is_given(fake):
    fake.open("ok7", connect_s=47)
    (words,) = fake.calls().values()
    assert words[-2:] == ["--", "ok7"] and "-oBatchMode=yes" in words and "-oExitOnForwardFailure=yes" in words
    assert "-oStreamLocalBindUnlink=yes" in words and "-oConnectTimeout=47" in words and {"-N", "-T", "-a", "-x"} <= set(words)
    (forward,) = [w for w in words if w.startswith("-L")]
    assert forward.startswith(f"-L{fake.run_dir}/numaprobe-ssh-") and forward.endswith("/n0.sock:/run/there.sock")


def test_at_most_so_many_at_once(fake):
    """Others begin when the slow one has been ended at its time limit."""
    assert fake.open("slow", "ok1", "ok2", "ok3", "ok4", at_once=1, connect_s=10) == {
        "slow": "failed timeout ssh: no connection within the time limit",
        **{f"ok{i}": f"ready hello from ok{i}" for i in (1, 2, 3, 4)}}


def test_one_is_stopped_while_it_connects(fake):
    found = fake.open("slow", "ok1", hold="stop")
    assert found == {"ok1": "ready hello from ok1"}
    for pid in fake.calls():
        ends(pid)


def test_a_socket_that_does_not_listen_yet(fake):
    os.mkfifo(fake.folder / "listen")
    found = {}
    opener = threading.Thread(target=lambda: found.update(fake.open("late")))
    opener.start()
    with open(fake.folder / "listen", "w", encoding="ascii"):  # it has bound its socket, and waits for this
        pass
    opener.join()
    assert found == {"late": "ready hello from late"}


REASONS = {
    "ssh: connect to host gone port 22: No route to host\r\n": "ssh: No route to host",
    "ssh: connect to host gone port 22: Connection refused\r\n": "ssh: Connection refused",
    "ssh: Could not resolve hostname gone: Name or service not known\r\n":
        "ssh: the host name cannot be resolved: Name or service not known",
    "Warning: something else\nroot@gone: Permission denied (publickey,password).\r\n":
        "ssh: Permission denied (publickey,password). No key of this account is accepted, and passwords are not requested",
    "@@@@@@@@@\nHost key for gone has changed.\nHost key verification failed.\r\n":
        "ssh: Host key verification failed: the host's key is not in known_hosts, or has changed",
    "Connection timed out during banner exchange\nConnection to 192.0.2.1 port 22 timed out\n": "ssh: Connection timed out",
    "kex_exchange_identification: read: reset\nConnection reset by 192.0.2.1 port 22\n": "ssh: Connection reset by the node",
    "Bad configuration option: gone-fishing\n": "ssh: Bad configuration option: gone-fishing",
    "gone: no such gone, at gone\n": "ssh: HOST: no such HOST, at HOST",
    "\x1b[2Jhostile\x07\n": "ssh: ?[2Jhostile?",
    "x" * 100000: "ssh: " + "x" * 250,
    "\n\n \n": "ssh: ended without a reason",
}


@pytest.mark.parametrize("said", REASONS)
def test_reasons(fake, said):
    (fake.folder / "gone").write_text(said, newline="")
    want = REASONS[said]
    got = fake.open("gone")["gone"]
    assert got == f"failed unreachable {want}" or (len(want) > 200 and got[len("failed unreachable "):] in want), got


def test_ends_without_a_word(fake):
    assert fake.open("silent") == {"silent": "failed unreachable ssh: ended without a reason"}


def test_no_terminal_to_prompt_at(fake):
    """Under a terminal of its own, as a user has it."""
    pid, fd = os.forkpty()
    if pid == 0:
        os.environ.update(fake.env)
        words = fake.words(["tty"], 1, 60, "", None)
        os.execv(words[0], words)
    out = b""
    with contextlib.suppress(OSError):  # EIO: all ends of the terminal are closed
        while block := os.read(fd, 1000):
            out += block
    os.waitpid(pid, 0)
    os.close(fd)
    assert b"tty failed unreachable ssh: has no terminal" in out


def test_names_that_are_options(fake):
    assert fake.open("-oProxyCommand=x", "a b", "ok1") == {
        "-oProxyCommand=x": "refused a node name has 1 to 63 letters, digits, '.', '-' and '_', and does not begin with '-' or '.'",
        "a": "b refused a node name has 1 to 63 letters, digits, '.', '-' and '_', and does not begin with '-' or '.'",
        "ok1": "ready hello from ok1"}
    assert len(fake.calls()) == 1


def test_ssh_is_not_installed(fake):
    assert fake.open("ok1", "ok2", program="/nonexistent/ssh") == {
        n: "failed unavailable cannot start /nonexistent/ssh: it is not installed" for n in ("ok1", "ok2")}


def test_a_tunnel_that_ends(fake):
    os.mkfifo(fake.folder / "end")
    with fake.held("ends") as p:
        assert p.stdout.readline().startswith("ends ready")
        with open(fake.folder / "end", "w", encoding="ascii"):
            pass
        assert p.stdout.readline() == "ends ended ssh: Connection closed by the node\n"


def test_killed_with_the_client(fake):
    """Its ssh ends with it. What it leaves behind is removed by the next."""
    with fake.held("ok1") as p:
        assert p.stdout.readline() == "ok1 ready hello from ok1\n"
        (folder,) = fake.run_dir.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        p.kill()
    (pid,) = fake.calls()
    ends(pid)
    assert fake.left() == [folder.name]
    with fake.held("ok2") as p:
        assert p.stdout.readline() == "ok2 ready hello from ok2\n"
        assert fake.left() != [folder.name] and len(fake.left()) == 1
        assert fake.open("ok3") == {"ok3": "ready hello from ok3"}, "another client beside it"
        assert len(fake.left()) == 1, "which removed only its own"
        p.stdin.close()
    assert fake.left() == []


# ---- A real sshd --------------------------------------------------------------------------------


@pytest.fixture(name="server", scope="module")
def server_fixture(tmp_path_factory):
    try:
        with sshd.server(tmp_path_factory.mktemp("sshd")) as s:
            yield s
    except sshd.Missing as e:
        pytest.skip(str(e))


@pytest.fixture(name="daemon")
def daemon_fixture(tmp_path):
    """A socket that says hello: what the daemon's would be."""
    path = str(tmp_path / "d.sock")
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen(50)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = made.accept()
                with contextlib.suppress(OSError):
                    connection.sendall(b"hello\n")
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield path
    made.shutdown(socket.SHUT_RDWR)
    made.close()


def real(server, path, *nodes, **settings):
    env = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"}
    words = [TUNNELS, server.program(**settings), "4", "60", path, "", *nodes]
    done = subprocess.run(words, text=True, capture_output=True, timeout=100, env=env, stdin=subprocess.DEVNULL, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_real_tunnels(server, daemon):
    nodes = [f"n{i}" for i in range(12)]
    assert real(server, daemon, *nodes) == {n: "ready hello" for n in nodes}


def test_real_no_daemon(server, tmp_path):
    found = real(server, str(tmp_path / "none.sock"), "n1")["n1"]
    assert found == "ready ssh: the node has no socket of the daemon, or it is closed to this account"


def test_real_refusals(server, daemon):
    assert "ssh: Permission denied (publickey). No key of this account" in real(server, daemon, "n1", IdentityFile="/dev/null")["n1"]
    assert "Host key verification failed: the host's key is not in known_hosts" in \
        real(server, daemon, "n1", UserKnownHostsFile="/dev/null")["n1"]
    assert real(server, daemon, "n1", Port=1)["n1"] == "failed unreachable ssh: Connection refused"
    assert real(server, daemon, "n1", HostName="nowhere.invalid")["n1"].startswith(
        "failed unreachable ssh: the host name cannot be resolved: ")


def test_real_server_ends(server, daemon):
    """The connection is cut: the tunnel's end is reported."""
    env = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"}
    with subprocess.Popen([TUNNELS, server.program(), "4", "60", daemon, "hold", "n1"], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=env) as p:
        assert p.stdout.readline() == "n1 ready hello\n"
        server.cut(signal.SIGKILL)
        assert p.stdout.readline() in ("n1 ended ssh: Connection closed by the node\n", "n1 ended ssh: Connection reset by the node\n")
