# SPDX-License-Identifier: Apache-2.0
"""Every command that the README shows works: its `sh` blocks run in order, line by line, in an empty
directory, against a daemon of this build. The nodes of fleet commands are virtual. The first block (fenced without `sh`) is ./quickstart itself and
./check; the former has tests of its own here, the latter is what runs us.

NUMAPROBE_BUILD names the build directory.
"""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import pytest

from conftest import PATIENCE, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NUMAPROBE_BUILD", "")
DOCUMENTS = ["README.md", "docs/GUIDE.md"]
# A verdict is an exit status of its own: as before, slower or faster, cannot be told.
VERDICTS = {"numaprobe fleet": (0, 7), "numaprobe compare": (0, 7, 8), "numaprobe check": (0, 1, 2, 3)}
BUILD_S = 900  # that a script may take which builds all programs first, beside other work
NODE_TIMEOUT = str(PATIENCE // 2)  # a node that answers late on a busy machine has not failed
READY = re.compile(r"event=ready .*?listen=(127\.0\.0\.1:\d+)")


def commands(text):
    """The logical lines of all fenced sh blocks."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        joined = re.sub(r"\\\n\s*", "", block)
        found += [l for l in joined.splitlines() if l.strip() and not l.startswith("#")]
    return found


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def wait_ready(stream, seconds=PATIENCE):
    """The daemon's address, from the line that it logs when it is ready."""
    seen, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and select.select([stream], [], [], end - time.monotonic())[0]:
        piece = os.read(stream.fileno(), 4096)
        seen += piece
        match = READY.search(seen.decode("utf-8", "replace"))
        if match:
            return match[1]
        if not piece:
            break
    raise AssertionError("the daemon did not get ready:\n" + seen.decode("utf-8", "replace"))


def status_of(collector):
    with urllib.request.urlopen(f"{collector}/v1/fleet/status", timeout=PATIENCE) as response:
        return json.load(response)


@contextlib.contextmanager
def serving():
    """Environment of somebody with the programs in PATH and a fresh daemon at NUMAPROBE_URL."""
    if not BUILD:
        pytest.skip("NUMAPROBE_BUILD is not set")
    folder = tempfile.mkdtemp(prefix="np-readme.", dir="/tmp")
    os.chmod(folder, 0o711)
    bench = os.path.join(folder, "numa_bench")  # ranks of root's daemon cannot look into /root
    shutil.copy(os.path.join(BUILD, "bench/numa_bench"), bench)
    shutil.copy(os.path.join(BUILD, "bench/numa_bench_mpi.so"), folder)
    env = dict(os.environ, NUMAPROBE_BENCH=bench, HOME=folder, NUMAPROBED_ADMISSION="ignore",
               NUMAPROBED_HOST_LOCK="none", NUMAPROBE_NODE_TIMEOUT=NODE_TIMEOUT,
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               PATH=os.pathsep.join([os.path.join(BUILD, d) for d in ("client", "daemon", "bench")]
                                    + [os.environ["PATH"]]))
    log = os.path.join(folder, "log")
    process = subprocess.Popen(
        ["numaprobed", "--config=/dev/null", "--listen=127.0.0.1:0",
         f"--socket={folder}/api.sock", f"--state-dir={folder}/state", f"--run-dir={folder}/run"],
        env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        env["URL"] = "http://" + wait_ready(process.stderr)
        env["SOCKET"] = f"{folder}/api.sock"
        env["NUMAPROBE_URL"] = "unix:" + env["SOCKET"]
        with open(log, "wb") as sink:  # keeps the pipe empty
            drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=sink)
        env["FOLDER"] = folder
        nodes = subprocess.Popen([os.path.join(BUILD, "tests/fleet/vnodes"), "--nodes=100", "--run-ms=20",
                                  f"--hosts={folder}/hosts"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        env["NUMAPROBE_FLEET_URL"] = f"http://%h:{json.loads(nodes.stdout.readline())['port']}"
        env["NUMAPROBE_HOSTS_FILE"] = os.path.join(folder, "hosts")
        collector = subprocess.Popen(
            [os.path.join(BUILD, "fleet/numaprobe-fleetd"), "--config=/dev/null", "--listen=127.0.0.1:0", "--nodes=node[001-100]",
             f"--url={env['NUMAPROBE_FLEET_URL']}", f"--hosts-file={folder}/hosts", f"--socket={folder}/fleet.sock",
             f"--state-dir={folder}/fleet", f"--run-dir={folder}/fleet-run"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        env["FLEET"] = "http://" + wait_ready(collector.stderr)
        with open(os.path.join(folder, "fleet.log"), "wb") as sink:
            subprocess.Popen(["cat"], stdin=collector.stderr, stdout=sink)
        until(lambda: status_of(env["FLEET"])["states"]["up"] == 100)
        yield env
    finally:
        process.terminate()
        process.wait(PATIENCE)
        if "collector" in locals():
            collector.terminate()
            collector.wait(PATIENCE)
        if "nodes" in locals():
            nodes.stdin.close()
            nodes.wait(PATIENCE)
        if "drain" in locals():
            drain.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def daemon():
    with serving() as env:
        yield env


def test_the_blocks_are_found():
    assert commands("a\n```sh\nx \\\n  y\n# no\nz\n```\n```\nnot\n```\n") == ["x y", "z"]
    found = commands(read("README.md"))
    assert any(c.startswith("curl ") for c in found)
    assert any(c.startswith("numaprobe run") for c in found)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_works(document):
    with serving() as env:
        for command in commands(read(document)):
            done = subprocess.run(["sh", "-c", command], env=env, cwd=env["FOLDER"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S)
            good = VERDICTS.get(" ".join(command.split()[:2]), (0,))
            assert done.returncode in good, f"{command}\n{done.stdout}{done.stderr}"
            into_file = any(word in command for word in ("--file=", "--html=", " > "))
            assert done.stdout.strip() or into_file, f"{command} printed nothing"


def script(*words, **options):
    # /dev/null as root's apt: what is missing is a failure here, never an installation
    env = dict(os.environ, NUMAPROBE_NO_INSTALL="1")
    return subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=BUILD_S, **options)


@pytest.mark.parametrize("name", ["./quickstart", "./check"])
def test_scripts_explain_themselves(name):
    done = script(name, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: " + name)
    done = script(name, "--no-such-option")
    assert done.returncode == 2 and "usage:" in done.stderr


def test_quickstart_wants_a_number_as_port():
    for port in ("x", "", "-1", "123456", "1;2"):
        done = script("./quickstart", "--port=" + port)
        assert done.returncode == 2 and "port" in done.stderr


@pytest.fixture(scope="module")
def clone(daemon):
    """The project's files alone, in a place of their own: nobody's .quickstart is touched."""
    folder = tempfile.mkdtemp(prefix="np-clone.", dir="/tmp")
    skip = shutil.ignore_patterns(".git", "build*", ".quickstart", ".check", "__pycache__")
    shutil.copytree(ROOT, os.path.join(folder, "numaprobe"), ignore=skip)
    yield os.path.join(folder, "numaprobe")
    shutil.rmtree(folder, ignore_errors=True)


def processes_under(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if folder.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def test_quickstart_in_a_fresh_clone(clone):
    env = dict(os.environ, NUMAPROBE_NO_INSTALL="1", TMPDIR=os.path.dirname(clone), NUMAPROBE_NODE_TIMEOUT=NODE_TIMEOUT)
    os.chmod(os.path.dirname(clone), 0o711)
    done = subprocess.run(["./quickstart"], cwd=clone, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=BUILD_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "LATENCY (ns)" in done.stdout and "curl -s http://127.0.0.1:" in done.stdout
    assert processes_under(clone) == []
    assert os.listdir(os.path.dirname(clone)) == ["numaprobe"], "the directory of sockets is gone"
    assert os.path.exists(os.path.join(clone, ".quickstart/state/numaprobe.db"))


def test_quickstart_shows_a_fleet(clone):
    env = dict(os.environ, NUMAPROBE_NO_INSTALL="1", TMPDIR=os.path.dirname(clone), NUMAPROBE_NODE_TIMEOUT=NODE_TIMEOUT)
    done = subprocess.run(["./quickstart", "--fleet"], cwd=clone, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=BUILD_S)
    assert done.returncode == 0, done.stdout + done.stderr
    slow = re.findall(r"^ *(node\d+) .*\bsure\b", done.stdout, re.M)
    assert len(slow) == 1, done.stdout
    assert re.search(r"web page is http://127\.0\.0\.1:\d+/ ", done.stdout), done.stdout
    assert processes_under(clone) == []
    assert os.listdir(os.path.dirname(clone)) == ["numaprobe"], "nor is a history left"


@pytest.mark.parametrize("words, line", [((), "Measuring"), (("--fleet",), "Starting numaprobe-fleetd")],
                         ids=["machine", "fleet"])
def test_quickstart_interrupted_leaves_nothing(clone, words, line):
    env = dict(os.environ, NUMAPROBE_NO_INSTALL="1", TMPDIR=os.path.dirname(clone), NUMAPROBE_NODE_TIMEOUT=NODE_TIMEOUT)
    process = subprocess.Popen(["./quickstart", *words], cwd=clone, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    assert any(said.startswith(line) for said in process.stdout)
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait(PATIENCE) == 143
    assert processes_under(clone) == []
    assert os.listdir(os.path.dirname(clone)) == ["numaprobe"]


@pytest.mark.parametrize("options", [["--keep"], ["--fleet", "--keep"]], ids=["machine", "fleet"])
def test_quickstart_keep_and_stop(clone, options):
    env = dict(os.environ, NUMAPROBE_NO_INSTALL="1", TMPDIR=os.path.dirname(clone), NUMAPROBE_NODE_TIMEOUT=NODE_TIMEOUT)

    def quickstart(*words):
        return subprocess.run(["./quickstart", *words], cwd=clone, env=env, timeout=BUILD_S, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    done = quickstart(*options)
    assert done.returncode == 0 and "./quickstart --stop" in done.stdout, done.stdout
    try:
        assert processes_under(clone)
        url = re.search(r"curl -s (http://127\.0\.0\.1:\d+)/v1/", done.stdout)[1]
        with urllib.request.urlopen(url + "/healthz", timeout=PATIENCE) as response:
            assert response.status == 200
        assert quickstart().returncode == 1, "a second one says that the first still runs"
    finally:
        done = quickstart("--stop")
    assert done.returncode == 0 and processes_under(clone) == []
    assert os.listdir(os.path.dirname(clone)) == ["numaprobe"], "the directory of sockets is gone"
    assert "Nothing is running" in quickstart("--stop").stdout
