# SPDX-License-Identifier: Apache-2.0
"""Programs of others that use numaprobe, as docs/INTEGRATIONS.md describes: each with the file that is shipped for it, against a real
daemon. What needs programs of PyPI is in tests/integrations."""
import os
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from client import CLIENT, run
from conftest import FAKE_BENCH, ROOT, Daemon, fake_bench_env, until

SHIPPED = ROOT / "docs" / "integrations"
STATES = {0: "ok", 1: "warning", 2: "critical", 3: "unknown"}
PREFIX = "feature.node.kubernetes.io/numaprobe."
# https://kubernetes.io: a value of a label, and the name behind its prefix
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"


class Node:
    """A daemon whose runs can be made slower, with a baseline."""

    def __init__(self, numaprobed, folder):
        folder.chmod(0o755)
        self.bench = folder / "fake_bench"
        shutil.copy(FAKE_BENCH, self.bench)
        self.daemon = Daemon(numaprobed, folder, {**fake_bench_env(), "NUMAPROBE_BENCH": str(self.bench)}).start()
        self.url = f"http://127.0.0.1:{self.daemon.port}"

    def measure(self, behaviour="good"):
        file = self.bench.with_suffix(".behaviour")
        file.write_text(behaviour)
        file.chmod(0o644)
        got = self.daemon.run(cpus="0", size="1-512")
        assert got["state"] == "succeeded", got
        return got["id"]


@pytest.fixture(scope="module")
def node(numaprobed, tmp_path_factory):
    made = Node(numaprobed, tmp_path_factory.mktemp("node"))
    runs = {"first": made.measure(), "ok": made.measure(), "critical": made.measure("scaled 1.5"), "last": made.measure()}
    assert made.daemon.request("PUT", "/v1/baselines/default", {"run": runs["first"]}).status == 200
    made.runs = runs
    yield made
    assert made.daemon.stop() == 0


def features(text):
    """The labels of a feature file, by the names behind our prefix."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(rf"{re.escape(PREFIX)}{LABEL}={LABEL}", line) for line in lines), text
    found = dict(line.removeprefix(PREFIX).split("=") for line in lines)
    assert len(found) == len(lines)
    return found


# ---- labels

@pytest.mark.parametrize("options, code", [([], 0), (["--run={critical}"], 2), (["--run={critical}", "--crit=90"], 1),
                                           (["nothing"], 3), (["--run=999"], 3)])
def test_labels_have_the_verdict_of_check(node, options, code):
    words = ["check", *(o.format(**node.runs) for o in options)]
    line = run(*words, url=node.url)
    nfd, slurm = (run(*words, "-o", form, url=node.url) for form in ("nfd", "slurm"))
    assert line.returncode == nfd.returncode == slurm.returncode == code, (line, nfd)
    labels = features(nfd.stdout)
    assert labels["verdict"] == STATES[code] and line.stdout.startswith(f"NUMAPROBE {STATES[code].upper()} - ")
    reason = re.search(r"^# numaprobe: (.*)", nfd.stdout)[1]
    assert reason.split(" old")[-1] in line.stdout, "the comment says why"
    assert not re.search(r"^# *\+", nfd.stdout, re.M), "no comment is an instruction"
    nodes = node.daemon.get("/v1/topology").json["nodes"]
    assert labels["numa-nodes"] == str(len(nodes))
    assert sum(int(v) for k, v in labels.items() if k.startswith("memory-")) == len(nodes)
    assert node.daemon.get("/v1/node").json["fingerprint"]["hardware"]["hash"].startswith(labels["hardware"])
    assert re.fullmatch(r"[\d.]+-[\d.]+ns", labels["latency-class"])
    assert labels.get("age") == (None if code == 3 else "day")
    assert slurm.stdout == "Features=" + ",".join(
        re.sub(r"\W", "_", f"numaprobe_{name}_{value}") for name, value in labels.items()) + "\n"
    assert bool(slurm.stderr) == (code == 3), "the reason, where the line has no place for it"


def test_labels_without_a_daemon(tmp_path):
    nfd, slurm = (run("check", "-o", form, url=f"unix:{tmp_path}/none") for form in ("nfd", "slurm"))
    assert nfd.returncode == slurm.returncode == 3
    assert features(nfd.stdout) == {"verdict": "unknown"} and "# numaprobe: no daemon responds" in nfd.stdout
    assert slurm.stdout == "Features=numaprobe_verdict_unknown\n" and "no daemon responds" in slurm.stderr


def test_labels_are_of_check_alone(node):
    for form in ("nfd", "slurm"):
        refused = run("runs", "-o", form, url=node.url)
        assert refused.returncode == 2 and not refused.stdout and "numaprobe check" in refused.stderr
    wrong = run("check", "-o", "nfd", "--warn=x", url=node.url)
    assert wrong.returncode == 3 and not wrong.stdout and "--warn" in wrong.stderr, "nothing that is no label reaches the file"


# ---- Kubernetes

@pytest.fixture(scope="module", name="pod")
def pod_of_labels():
    documents = list(yaml.safe_load_all((SHIPPED / "kubernetes" / "numaprobe-labels.yaml").read_text()))
    assert [d["kind"] for d in documents] == ["Namespace", "DaemonSet"]
    return documents[1]["spec"]["template"]["spec"]


def begin_pod(pod, folder, url):
    """The container's command on this machine, with its environment."""
    (container,) = pod["containers"]
    env = {e["name"]: e["value"] for e in container["env"]}
    env |= {"FEATURES": str(folder), "NUMAPROBE_URL": url, "INTERVAL_S": "3600", "PATH": f"{CLIENT.parent}:{os.environ['PATH']}"}
    # pylint: disable=consider-using-with
    return subprocess.Popen([*container["command"], *container["args"]], env=env, start_new_session=True)


def test_the_pod_may_do_no_more_than_it_needs(pod):
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"] and "privileged" not in security
    assert security["capabilities"] == {"drop": ["ALL"]} and not pod["automountServiceAccountToken"]
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert not any(pod.get(k) for k in ("hostPID", "hostIPC"))


def test_the_pod_writes_a_feature_file_and_removes_it(pod, node, tmp_path):
    process = begin_pod(pod, tmp_path, node.url)
    try:
        text = until((lambda: (tmp_path / "numaprobe").exists() and (tmp_path / "numaprobe").read_text()))
        assert re.match(r"# \+expiry-time=2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n# numaprobe: run ", text), text
        assert features(text)["verdict"] == "ok"
        assert [p.name for p in tmp_path.iterdir()] == ["numaprobe"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0 and not list(tmp_path.iterdir())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_pod_without_a_daemon_says_unknown(pod, tmp_path):
    process = begin_pod(pod, tmp_path, f"unix:{tmp_path}/none")
    try:
        text = until((lambda: (tmp_path / "numaprobe").exists() and (tmp_path / "numaprobe").read_text()))
        assert features(text) == {"verdict": "unknown"}, text
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
