# SPDX-License-Identifier: Apache-2.0
"""Programs of others that use numaprobe, as docs/INTEGRATIONS.md describes: each with the file that is shipped for it, against a real
daemon. What needs programs of PyPI is in tests/integrations."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

from client import CLIENT, run
from conftest import FAKE_BENCH, PATIENCE, ROOT, Daemon, fake_bench_env, until
from ports import free_port
from test_tls import files, pki  # noqa: F401

SHIPPED = ROOT / "docs" / "integrations"
MONITORING = ROOT / "docs" / "monitoring"
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
        assert process.wait(PATIENCE) == 0 and not list(tmp_path.iterdir())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_pod_without_a_daemon_says_unknown(pod, tmp_path):
    process = begin_pod(pod, tmp_path, f"unix:{tmp_path}/none")
    try:
        text = until((lambda: (tmp_path / "numaprobe").exists() and (tmp_path / "numaprobe").read_text()))
        assert features(text) == {"verdict": "unknown"}, text
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# ---- programs that monitor

def program(name, folder):
    """Of this machine, or unpacked below build/."""
    places = [ROOT / "build" / folder / "usr" / place for place in ("bin", "sbin", "lib/nagios/plugins")]
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, places)]))


PROMTOOL, PROMETHEUS = program("promtool", "promtool"), program("prometheus", "promtool")
EXPORTER, NRPE, CHECK_NRPE = (program(name, "monitors") for name in ("prometheus-node-exporter", "nrpe", "check_nrpe"))
ICINGA = next((str(p) for p in sorted((ROOT / "build" / "monitors").glob("usr/lib/*/icinga2/sbin/icinga2"))), None)
needs_prometheus = pytest.mark.skipif(not (PROMTOOL and PROMETHEUS), reason="prometheus is not there (tools/promtool.sh)")
needs_monitors = pytest.mark.skipif(not (EXPORTER and NRPE and CHECK_NRPE and ICINGA),
                                    reason="Icinga, NRPE or node_exporter is not there (tools/monitors.sh)")


@contextlib.contextmanager
def running(*words, **kw):
    """A server of others, killed at the end; what it prints is in the file `log` of its folder."""
    with subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, start_new_session=True, **kw) as p:
        try:
            yield p
        finally:
            os.killpg(p.pid, signal.SIGKILL)


def fetched(url):
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


def configured(folder, pki, targets, token):
    """The shipped configuration of Prometheus with the files and addresses of this test."""
    text = (MONITORING / "prometheus.yml").read_text()
    for was, now in {"/etc/prometheus": folder, '"node01:7780", "node02:7780"': f'"{targets[0]}"', "node03:9100": targets[1],
                     "60s": "5s"}.items():
        assert was in text
        text = text.replace(was, str(now))
    (folder / "numaprobe-ca.pem").write_bytes((pki / "ca.pem").read_bytes())
    (folder / "numaprobe.token").write_text(token + "\n")
    shutil.copy(MONITORING / "numaprobe.rules.yml", folder)
    (folder / "prometheus.yml").write_text(text)
    return folder / "prometheus.yml"


@needs_prometheus
def test_promtool_accepts_the_configuration(pki, tmp_path):  # noqa: F811
    config = configured(tmp_path, pki, ["node01:7780", "node03:9100"], "x")
    done = subprocess.run([PROMTOOL, "check", "config", config], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "SUCCESS" in done.stdout and not done.stderr, done


def textfile(folder, metrics):
    return subprocess.run([MONITORING / "numaprobe-textfile"], capture_output=True, text=True, timeout=PATIENCE,
                          env={"PATH": os.environ["PATH"], "NUMAPROBE_TEXTFILE": f"{folder}/numaprobe.prom", "NUMAPROBE_METRICS": metrics})


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_textfile_is_complete_or_as_before(node, tmp_path):
    done = textfile(tmp_path, node.url + "/metrics")
    assert (done.returncode, done.stderr) == (0, ""), done
    text = (tmp_path / "numaprobe.prom").read_text()
    assert "numaprobe_node_info{" in text and "process_" not in text
    if PROMTOOL:
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    lost = textfile(tmp_path, "http://127.0.0.1:1/metrics")
    assert lost.returncode == 1 and "curl" in lost.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["numaprobe.prom"] and (tmp_path / "numaprobe.prom").read_text() == text


@pytest.fixture(scope="module")
def scraped(node, numaprobed, tmp_path_factory, pki):  # noqa: F811
    """A real Prometheus with both jobs: a daemon that wants TLS and a token, and a real node_exporter with the file of another. Gives
    a query's result."""
    if not (PROMETHEUS and EXPORTER):
        pytest.skip("prometheus or node_exporter is not there (tools/promtool.sh, tools/monitors.sh)")
    folder = tmp_path_factory.mktemp("prometheus")
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env(),
                    ["--listen=127.0.0.1:0,https://127.0.0.1:0", "--anonymous=none", *files(pki)]).start()
    local = f"unix:{daemon.socket}"
    assert run("run", "--cpus=0", "--size=1-512", url=local).returncode == 0
    token = run("token", "create", "prometheus", "--scope=read", url=local).stdout.strip()
    tls = int(re.search(r"https://127\.0\.0\.1:(\d+)", "\n".join(daemon.log))[1])
    assert textfile(folder, node.url + "/metrics").returncode == 0
    exporter, port = free_port(), free_port()
    config = configured(folder, pki, [f"localhost:{tls}", f"localhost:{exporter}"], token)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(folder / "log", "w", encoding="utf-8"))
        stack.enter_context(running(EXPORTER, f"--web.listen-address=127.0.0.1:{exporter}", "--collector.disable-defaults",
                                    "--collector.textfile", f"--collector.textfile.directory={folder}", stderr=log))
        stack.enter_context(running(PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                                    f"--web.listen-address=127.0.0.1:{port}", "--web.enable-lifecycle", stderr=log))

        def api(path, **query):
            text = fetched(f"http://127.0.0.1:{port}/api/v1/{path}?" + urllib.parse.urlencode(query))
            return text and json.loads(text)["data"]
        api.folder, api.tls, api.address, api.token = folder, tls, f"http://127.0.0.1:{port}", token
        yield api
    daemon.stop()


def values(api, expression):
    """{(job, instance): value}"""
    data = api("query", query=expression)
    return {(r["metric"].get("job"), r["metric"].get("instance")): float(r["value"][1]) for r in data["result"]} if data else {}


def test_a_real_prometheus_scrapes_both_ways(scraped):
    both = {("numaprobe", f"localhost:{scraped.tls}"), ("numaprobe", "localhost:7780")}
    until(lambda: set(values(scraped, "numaprobe_node_info")) == both)
    until(lambda: set(values(scraped, "up").values()) == {1})
    until(lambda: set(values(scraped, "node_textfile_scrape_error").values()) == {0})
    until(lambda: values(scraped, "numaprobe_run_number").get(("numaprobe", f"localhost:{scraped.tls}")) == 1)


def test_every_expression_of_the_dashboard_is_one(scraped):
    """Prometheus evaluates each: no two series match where one is needed, and nodes of a class are one line."""
    until(lambda: len(values(scraped, "numaprobe_node_info")) == 2 and set(values(scraped, "up").values()) == {1})
    board = json.loads((MONITORING / "numaprobe-dashboard.json").read_text())
    found = {}
    for where in [*board["panels"], *board["annotations"]["list"]]:
        for target in where.get("targets", [where] if "expr" in where else []):
            expression = target["expr"].replace("$instance", ".*").replace("$hardware", ".*")
            data = scraped("query", query=expression)
            assert data is not None, f"{where.get('title', where.get('name'))}: {expression}"
            found.setdefault(where.get("id"), []).append(data["result"])
    # The two daemons are of one machine: one class. The median of two is between them.
    for median, slowest in zip(*found[15]):
        assert float(median["value"][1]) <= float(slowest["value"][1])
    assert len(found[15][0]) == len({r["metric"]["variant"] for r in found[15][0]}) >= 1
    assert sum(float(r["value"][1]) for r in found[16][0]) == 1, "one node has a baseline, and is as before"
    assert len(found[20][0]) >= 2


def test_a_wrong_token_is_seen_at_the_target(scraped):
    """The file is read at each scrape."""
    def target():
        data = scraped("targets")
        return data and {t["labels"]["job"]: t for t in data["activeTargets"]}.get("numaprobe") or {}
    until(lambda: target().get("health") == "up")
    (scraped.folder / "numaprobe.token").write_text("np_" + "0" * 64 + "\n")
    until(lambda: target().get("health") == "down" and "401 Unauthorized" in target().get("lastError", ""))
    (scraped.folder / "numaprobe.token").write_text(scraped.token + "\n")
    until(lambda: target().get("health") == "up")


# ---- Icinga and NRPE

ICINGA_TEST = """
include "{command}"
object Host "node01" {{ check_command = "numaprobe", enable_active_checks = false, vars.numaprobe = true }}
object CheckerComponent "checker" {{ }}
object PerfdataWriter "perfdata" {{
  host_perfdata_path = "{folder}/host", service_perfdata_path = "{folder}/service"
  host_temp_path = "{folder}/host.new", service_temp_path = "{folder}/service.new"
  service_format_template = "$service.state$ $service.output$ | $service.perfdata$"
  rotation_interval = 1s
}}
"""


@needs_monitors
@pytest.mark.parametrize("run_of, state", [("ok", "OK"), ("critical", "CRITICAL")])
def test_icinga_runs_the_check(node, tmp_path, run_of, state):
    """Icinga loads the shipped definition, starts the check, and has its state, text and performance data."""
    shipped = (MONITORING / "icinga2.conf").read_text()
    assert "/usr/bin/numaprobe" in shipped
    wrapper = tmp_path / "numaprobe"
    wrapper.write_text(f"#!/bin/sh\nexec {CLIENT} \"$@\" --run={node.runs[run_of]}\n")
    wrapper.chmod(0o755)
    (tmp_path / "command.conf").write_text(
        shipped.replace("/usr/bin/numaprobe", str(wrapper)).replace("check_interval = 5m", f'check_interval = 1s\n  vars.numaprobe_url = "{node.url}"'))
    (tmp_path / "icinga2.conf").write_text(ICINGA_TEST.format(command=tmp_path / "command.conf", folder=tmp_path))
    places = [f"-D{name}={tmp_path}/{name}" for name in ("DataDir", "LogDir", "InitRunDir", "CacheDir", "SpoolDir")]
    for place in places:
        os.mkdir(place.partition("=")[2])
    words = [ICINGA, "daemon", "-c", tmp_path / "icinga2.conf", "-x", "notice", *places, "-DRunAsUser=root", "-DRunAsGroup=root"]
    libraries = {**os.environ, "LD_LIBRARY_PATH": str(ROOT.joinpath(ICINGA).parents[2])}
    checked = subprocess.run([*map(str, words), "-C"], capture_output=True, text=True, timeout=PATIENCE, env=libraries)
    assert checked.returncode == 0 and "Instantiated 1 Service." in checked.stdout, checked
    with open(tmp_path / "log", "w", encoding="utf-8") as log, running(*words, env=libraries, stdout=log, stderr=log):
        until(lambda: any(p.stat().st_size for p in tmp_path.glob("service.[0-9]*")))
    text = "".join(p.read_text() for p in tmp_path.glob("service.[0-9]*"))
    assert re.search(rf"^{state} NUMAPROBE {state} - run {node.runs[run_of]} of .*worst=[\d.]+%;3", text, re.M), text


@needs_monitors
@pytest.mark.skipif(os.geteuid() != 0, reason="NRPE changes to another account")
@pytest.mark.parametrize("lost, code", [(False, 0), (True, 3)])
def test_nrpe_runs_the_check(node, tmp_path, lost, code):
    shipped = (MONITORING / "numaprobe.nrpe.cfg").read_text()
    url = "http://127.0.0.1:1" if lost else node.url
    (tmp_path / "numaprobe.cfg").write_text(shipped.replace("/usr/bin/numaprobe", str(CLIENT)).replace("http://127.0.0.1:7780", url))
    port = free_port()
    (tmp_path / "nrpe.cfg").write_text(f"server_address=127.0.0.1\nserver_port={port}\nallowed_hosts=127.0.0.1\nnrpe_user=nobody\n"
                                       f"nrpe_group=nogroup\npid_file={tmp_path}/pid\ninclude={tmp_path}/numaprobe.cfg\n")

    def ask():
        done = subprocess.run([CHECK_NRPE, "-n", "-t", "60", "-H", "127.0.0.1", "-p", str(port), "-c", "check_numaprobe"], capture_output=True,
                              text=True, timeout=PATIENCE)
        return "refused" not in done.stdout + done.stderr and done
    with running(NRPE, "-n", "-f", "-c", tmp_path / "nrpe.cfg"):
        done = until(ask)
    assert done.returncode == code, done
    assert done.stdout.startswith("NUMAPROBE UNKNOWN - no daemon responds" if lost else "NUMAPROBE OK - run "), done


# ---- the client of one file

EXAMPLE = SHIPPED / "python" / "numaprobe_client.py"


def example(*words, **env):
    return subprocess.run([sys.executable, str(EXAMPLE), *map(str, words)], capture_output=True, text=True, timeout=PATIENCE,
                          env={"PATH": os.environ["PATH"], **env})


def test_the_python_client_measures_prints_and_compares(node):
    done = example("--url", node.url, "--cpus=0", "--size=1-512", "--compare", node.runs["first"])
    assert (done.returncode, done.stderr) == (0, ""), done
    newest = node.daemon.get("/v1/runs?limit=1").json["runs"][0]
    assert newest["spec"]["note"] == "by numaprobe_client.py"
    head, columns, *rows, verdict = done.stdout.splitlines()
    assert head == f"run {newest['id']} of latency on {newest['node']}"
    assert columns.split() == ["matrix", "rank", "working_set_bytes", "median_ns", "lo_ns", "hi_ns"] and len(rows) == 10
    assert verdict.startswith(f"against run {node.runs['first']}: same; ")


def test_the_python_client_has_the_exit_status_of_compare(node):
    node.bench.with_suffix(".behaviour").write_text("scaled 1.5")
    try:
        done = example("--cpus=0", "--size=1-512", "--compare", node.runs["first"], NUMAPROBE_URL=f"unix:{node.daemon.socket}")
    finally:
        node.bench.with_suffix(".behaviour").write_text("good")
    assert done.returncode == 7 and ": slower; " in done.stdout, done


@pytest.mark.parametrize("words, reason", [(["--size=nonsense"], "size: "), (["--benchmark=nothing"], "benchmark: "),
                                           (["--compare=999", "--cpus=0", "--size=1"], "999")])
def test_the_python_client_states_what_the_daemon_refuses(node, words, reason):
    done = example("--url", node.url, *words)
    assert done.returncode == 1 and done.stderr.startswith("numaprobe_client: ") and reason in done.stderr, done
    assert "Traceback" not in done.stderr


def test_the_python_client_without_a_daemon_and_with_a_busy_one(make_daemon, tmp_path):
    lost = example(NUMAPROBE_URL=f"unix:{tmp_path}/none")
    assert lost.returncode == 1 and f"unix:{tmp_path}/none" in lost.stderr and "Traceback" not in lost.stderr
    closed = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse"}, ["--admit-load=refuse:0"])
    if closed.get("/v1/availability").json["available"]:
        pytest.skip("nothing at all runs on this machine")
    busy = example("--url", f"http://127.0.0.1:{closed.port}")
    assert busy.returncode == 1 and re.search(r"^  \w+: ", busy.stderr, re.M), busy


def test_the_python_client_by_tls_with_a_token(make_daemon, pki, tmp_path):  # noqa: F811
    daemon = make_daemon(fake_bench_env(), ["--listen=127.0.0.1:0,https://127.0.0.1:0", "--anonymous=none", *files(pki)])
    tls = int(re.search(r"https://127\.0\.0\.1:(\d+)", "\n".join(daemon.log))[1])
    token = tmp_path / "token"
    token.write_text(run("token", "create", "me", "--scope=run", url=f"unix:{daemon.socket}").stdout)
    words = ["--url", f"https://localhost:{tls}", "--cacert", pki / "ca.pem", "--cpus=0", "--size=1"]
    done = example(*words, "--token-file", token)
    assert (done.returncode, done.stderr) == (0, ""), done
    token.write_text("np_" + "0" * 64)
    refused = example(*words, "--token-file", token)
    assert refused.returncode == 1 and "token" in refused.stderr, refused
    unsigned = example(*words[:2], "--cpus=0", "--size=1")
    assert unsigned.returncode == 1 and "certificate" in unsigned.stderr, unsigned
