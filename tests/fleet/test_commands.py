# SPDX-License-Identifier: Apache-2.0
"""Fleet commands against virtual nodes (vnodes), whose truth is known."""
import contextlib
import json
import os
import pathlib
import resource
import subprocess

BUILD = pathlib.Path(os.environ["NUMAPROBE_BUILD"])
MOST = min(10000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 1000)


@contextlib.contextmanager
def virtual(folder, nodes, *options):
    """Options of the command line that reach the nodes, and their truth."""
    process = subprocess.Popen([BUILD / "tests/fleet/vnodes", f"--nodes={nodes}", f"--hosts={folder}/hosts",
                                f"--truth={folder}/truth", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(process.stdout.readline())["port"]
        names = f"node[{1:0{len(str(nodes))}}-{nodes}]"
        yield ["-w", names, f"--fleet-url=http://%h:{port}", f"--hosts-file={folder}/hosts"], \
            json.loads((folder / "truth").read_text())["world"]
    finally:
        process.stdin.close()
        assert process.wait(120) == 0


def fleet(*args):
    return subprocess.run([BUILD / "client/numaprobe", "fleet", *args], capture_output=True, text=True, timeout=100,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})


def test_the_slow_node_is_found_and_why(tmp_path):
    with virtual(tmp_path, 200, "--bad=1", "--bad-percent=8", "--seed=3") as (options, truth):
        done = fleet("outliers", *options, "-o", "json")
    slow = [n for n in truth["nodes"] if n["bad"]]
    sure = [f["node"] for f in json.loads(done.stdout)["verdict"]["findings"] if f["grade"] == "sure"]
    assert done.returncode == 7 and sure == [slow[0]["node"]], (done.returncode, done.stdout, done.stderr)
    assert ("1.8.2" in done.stdout) == slow[0]["old_bios"], "its firmware is older, and that is stated"


def test_nodes_that_do_wrong_are_named_and_no_other_is_lost(tmp_path):
    faults = {"node007": ("refuses", "connection refused"), "node008": ("garbage", "not HTTP"),
              "node009": ("cut", "ended before"), "node010": ("name", "another node responds"),
              "node011": ("text", "a node name has"), "node012": ("json", ""), "node014": ("older", "too old"),
              "node015": ("unavailable", "is starting")}
    script = ";".join(f"{node} {fault}" for node, (fault, _) in faults.items()) + ";node016 clock;node017 newer;node018 gaps"
    with virtual(tmp_path, 100, "--bad=0", f"--faults={script}") as (options, _):
        done = fleet("status", *options)
    assert done.returncode == 9, (done.returncode, done.stdout, done.stderr)
    assert f"{100 - len(faults)} of 100 nodes responded" in done.stderr, done.stderr
    for node, (_, why) in faults.items():
        assert any(line.startswith(node) and why in line for line in done.stderr.splitlines()), (node, why, done.stderr)
    assert "node016" in done.stderr and "clock" in done.stderr, done.stderr
    assert "\x1b" not in done.stdout + done.stderr, "hostile text reached the terminal"


def test_ten_thousand_different_errors(tmp_path):
    with virtual(tmp_path, MOST, "--runs=1", "--bad=0", "--faults=100% unavailable=1") as (options, _):
        done = fleet("status", *options)
    assert done.returncode == 1, (done.returncode, done.stderr[-2000:])
    lines = done.stderr.splitlines()
    assert len(lines) < 100 and f"0 of {MOST} nodes responded" in lines[-1], done.stderr[-2000:]
    assert any("is starting" in line for line in lines), done.stderr[:2000]
