# SPDX-License-Identifier: Apache-2.0
"""Admission as a user meets it. The node is never free here: hours in which it is closed are sure to be in the way,
whatever else the machine does."""
import datetime
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import pytest

from conftest import FAKE_BENCH, PATIENCE, Daemon, build_dir, fake_bench_env, supervisor_of, until

SPEC = {"benchmark": "latency", "size": "1-4"}


def closed_hours():
    """An hour of the day that is half a day away."""
    now = datetime.datetime.now()
    begin = (now + datetime.timedelta(hours=12)).hour
    return f"{begin:02}:00-{begin:02}:30"


# Whatever else is on this machine does not count.
FREE = [f"--admit-{kind}=ignore" for kind in (
    "busy-cpus load cpu-pressure memory-pressure batch-job kubernetes-pods cpu-quota throttled steal swap disturbing "
    "frequency-capped").split()]


def closed(make_daemon, *args, hours=None, home=None):
    """A daemon whose node is closed and, but for that, always free."""
    return make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse"},
                       [*FREE, *([] if hours == "" else [f"--hours={closed_hours()}"]), *args], home)


def zone_file(path, east_s, changed):
    """A zone without summer time; the C library reads a file again whose time differs by a second."""
    path.write_bytes(b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", east_s, 0, 0) + b"XXX\0")
    os.utime(path, (changed, changed))


@pytest.mark.skipif(subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0 or not os.path.exists("/etc/localtime"),
                    reason="no mount namespace, or no zone")
def test_hours_are_of_the_zone_that_the_system_has_now(numaprobed, make_daemon, tmp_path):
    """As timedatectl sets it while the daemon runs."""
    zone, program = tmp_path / "zone", tmp_path / "numaprobed"
    zone_file(zone, 0, 1000000000)
    program.write_text(f"""#!/bin/sh
exec unshare -m sh -c 'mount --bind {zone} "$(readlink -f /etc/localtime)" && exec {numaprobed} "$@"' sh "$@"
""")
    program.chmod(0o755)
    now = datetime.datetime.now(datetime.timezone.utc)
    around = [(now + datetime.timedelta(hours=h)).strftime("%H:%M") for h in (-2, 2)]
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse"}, [*FREE, f"--hours={around[0]}-{around[1]}"], program=program)
    assert daemon.get("/v1/availability").json["available"]
    zone_file(zone, 12 * 3600, 1000000001)
    answer = daemon.get("/v1/availability").json
    assert [b["kind"] for b in answer["blockers"]] == ["outside_hours"], answer
    zone_file(zone, 0, 1000000002)
    assert daemon.get("/v1/availability").json["available"]


def test_by_default_a_node_that_is_not_free_refuses(numaprobed, tmp_path_factory):
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), fake_bench_env(), [f"--hours={closed_hours()}"])
    del daemon.env["NUMAPROBED_ADMISSION"]
    try:
        answer = daemon.start().post("/v1/runs", SPEC)
        assert answer.status == 409 and "outside_hours" in [b["kind"] for b in answer.json["blockers"]], answer.body
    finally:
        daemon.stop()


def test_a_closed_node_refuses_and_says_when(make_daemon):
    daemon = closed(make_daemon)
    answer = daemon.post("/v1/runs", SPEC)
    assert answer.status == 409 and answer.json["type"] == "/problems/busy", answer.body
    (blocker,) = answer.json["blockers"]
    assert blocker["kind"] == "outside_hours" and blocker["unit"] == "min" and blocker["limit"] == 0
    assert 10 * 60 < blocker["measured"] <= 12 * 60, "an hour may have begun meanwhile"
    assert int(answer.headers["Retry-After"]) == blocker["measured"] * 60
    now = daemon.get("/v1/availability").json
    assert now["available"] is False and now["blockers"][0]["kind"] == "outside_hours"
    assert now["retry_after_s"] > 0 and now["took_ms"] >= 0
    assert daemon.get("/v1/runs").json["runs"] == []


def test_a_dry_run_has_the_plan_and_what_blocks_it(make_daemon):
    daemon = closed(make_daemon)
    dry = daemon.post("/v1/runs", {**SPEC, "dry_run": True})
    assert dry.status == 200 and dry.json["plan"]["ranks"] and "--bind=" in dry.json["command"]
    assert dry.json["admission"]["admitted"] is False and dry.json["admission"]["waits"] is False
    assert [b["kind"] for b in dry.json["admission"]["blockers"]] == ["outside_hours"]
    for form in ([], ["-o", "json"]):
        done = numaprobe(daemon, "run", "latency", "--size=1-4", "--dry-run", *form)
        assert done.returncode == 6 and "mpirun" in done.stdout, done
        assert "the run is blocked: runs may start at" in done.stderr and "--wait-for-node" in done.stderr
    done = numaprobe(daemon, "run", "latency", "--size=1-4", "--dry-run", "--wait-for-node=60")
    assert done.returncode == 0 and "the run would wait: runs may start at" in done.stderr
    assert numaprobe(daemon, "run", "latency", "--size=1-4").returncode == 6
    assert daemon.get("/v1/runs").json["runs"] == []


def test_a_recorded_machine_has_plans(make_daemon):
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse",
                          "HWLOC_SYNTHETIC": "pack:2 [numa(memory=4294967296)] core:2 pu:1"})
    dry = daemon.post("/v1/runs?dry_run=true", {**SPEC, "ranks": "one-per-numa", "queue_s": 60})
    assert dry.status == 200 and [r["mem_node"] for r in dry.json["plan"]["ranks"]] == [0, 1]
    now = dry.json["admission"]
    assert not now["admitted"] and not now["waits"], "waiting does not help"
    assert "topology_not_live" in [b["kind"] for b in now["blockers"]]


def test_what_is_only_noted_stays_with_the_run(make_daemon):
    daemon = closed(make_daemon, "--admit-outside-hours=warn")
    assert daemon.get("/v1/availability").json["warnings"][0]["kind"] == "outside_hours"
    run = daemon.run(size="1-4")
    assert run["state"] == "succeeded"
    assert any(c["kind"] == "outside_hours" for c in run["conditions"]), run["conditions"]


def test_a_run_waits_and_is_canceled_when_its_time_is_over(make_daemon):
    daemon = closed(make_daemon)
    dry = daemon.post("/v1/runs", {**SPEC, "queue_s": 10, "dry_run": True})
    assert dry.status == 200 and dry.json["admission"]["admitted"] is False and dry.json["admission"]["blockers"]
    assert dry.json["admission"]["waits"] is True

    def seen_to_wait():
        """All events of a run, unless we came so late that it had ended."""
        answer = daemon.post("/v1/runs", {**SPEC, "queue_s": 10})
        assert answer.status == 202
        events = [run for _, _, run in daemon.events(answer.json["id"])]
        return events[0]["state"] == "queued" and events
    events = until(seen_to_wait)
    assert any(run["waiting"] and "runs may start at" in run["waiting"]["text"] for run in events)
    run = daemon.wait(events[0]["id"])
    assert run["state"] == "canceled" and run["error"]["type"] == "timeout" and run["waiting"] is None
    assert "busy for 10 s: runs may start at" in run["error"]["text"]


def test_a_run_that_waits_starts_when_the_node_is_free(make_daemon, tmp_path):
    config = tmp_path / "numaprobed.conf"
    config.write_text(f"hours = {closed_hours()}\nadmission = refuse\n")
    daemon = closed(make_daemon, f"--config={config}", hours="")  # of the command line they would win over the file
    run_id = daemon.post("/v1/runs", {**SPEC, "queue_s": 600}).json["id"]
    seen = []
    for _, _, run in daemon.events(run_id):
        seen.append(run["state"])
        if run["waiting"] and config.read_text().startswith("hours"):
            config.write_text("admission = refuse\n")
            daemon.process.send_signal(1)  # SIGHUP
    assert seen[0] == "queued" and seen[-1] == "succeeded"


def test_a_run_that_waits_outlives_the_daemon(make_daemon):
    daemon = closed(make_daemon)
    run_id = daemon.post("/v1/runs", {**SPEC, "queue_s": 600}).json["id"]
    assert daemon.stop() == 0
    daemon = closed(make_daemon, home=daemon.home)
    run = daemon.get(f"/v1/runs/{run_id}").json
    assert run["state"] == "queued" and run["spec"]["queue_s"] == 600
    assert daemon.post(f"/v1/runs/{run_id}/cancel").json["state"] == "canceled"


def test_force_is_for_administrators(make_daemon):
    daemon = closed(make_daemon, "--anonymous=run")
    refused = daemon.post("/v1/runs", {**SPEC, "force": True})
    assert refused.status == 403 and refused.json["member"] == "force"
    answer = daemon.request("POST", "/v1/runs", {**SPEC, "force": True}, unix=True)
    assert answer.status == 202, answer.body
    run = daemon.wait(answer.json["id"])
    assert run["state"] == "succeeded" and run["spec"]["force"] is True
    assert any(c["kind"] == "forced" and c["text"].startswith("outside_hours was overruled: ") for c in run["conditions"]), run["conditions"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_another_account_may_not_force(make_daemon, request):
    folder = tempfile.mkdtemp()
    request.addfinalizer(lambda: shutil.rmtree(folder))
    os.chmod(folder, 0o755)
    daemon = closed(make_daemon, f"--socket={folder}/socket", "--anonymous=run")
    os.chmod(daemon.socket, 0o666)
    body = json.dumps({**SPEC, "force": True})
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w",
                           "%{http_code}", "--unix-socket", daemon.socket, "-H", "Content-Type: application/json",
                           "-d", body, "http://localhost/v1/runs"], capture_output=True, text=True)
    assert done.stdout == "403", done


def test_daemons_of_one_host_take_turns(make_daemon, tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "refuse",
                          "NUMAPROBED_HOST_LOCK": str(lock)}, FREE)
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = daemon.post("/v1/runs", SPEC)
        assert answer.status == 409 and [b["kind"] for b in answer.json["blockers"]] == ["other_instance"]
    assert daemon.run(size="1-4")["state"] == "succeeded"
    subprocess.run(["flock", f"--timeout={PATIENCE}", lock, "true"], check=True)  # it is given back


def test_the_host_stays_locked_until_the_run_is_gone(make_daemon, tmp_path):
    """Killed, a daemon leaves its run to the supervisor: whoever looks meanwhile finds the host taken."""
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    tmp_path.chmod(0o755)
    lock = tmp_path / "lock"
    lock.touch()
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench), "NUMAPROBED_HOST_LOCK": str(lock)})
    run_id = daemon.post("/v1/runs", SPEC).json["id"]
    next(e for e in daemon.events(run_id) if e[2]["state"] == "running")
    supervisor = until(lambda: supervisor_of(daemon))  # it is started after we are told
    os.kill(supervisor, signal.SIGSTOP)
    try:
        daemon.process.kill()
        daemon.process.wait(timeout=PATIENCE)
        with open(lock) as wanted, pytest.raises(BlockingIOError):
            fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    subprocess.run(["flock", f"--timeout={PATIENCE}", lock, "true"], check=True)


def numaprobe(daemon, *args):
    return subprocess.run([build_dir() / "client" / "numaprobe", *args], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "NUMAPROBE_URL": f"http://127.0.0.1:{daemon.port}", "HOME": "/nonexistent"})


def test_a_run_that_no_node_has_room_for_does_not_queue(make_daemon, tmp_path):
    """While another one is measured, too: what is free then does not count, all memory does."""
    bench = tmp_path / "fake_bench-hang"
    bench.symlink_to(FAKE_BENCH)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the account of the ranks comes through
    daemon = make_daemon({**fake_bench_env(), "NUMAPROBE_BENCH": str(bench)}, FREE)
    spec = {"benchmark": "latency", "cpus": "0"}
    first = daemon.post("/v1/runs", {**spec, "size": "1"}).json["id"]
    until(lambda: daemon.get(f"/v1/runs/{first}").json["state"] == "running")
    large = daemon.post("/v1/runs", {**spec, "size": "2T"})
    assert large.status >= 400 and "% of its memory)" in large.json["detail"], large.body
    dry = daemon.post("/v1/runs?dry_run=true", {**spec, "size": "2T"})
    assert dry.status == 200 and [b["kind"] for b in dry.json["admission"]["blockers"]] == ["memory"], dry.body
    shown = daemon.get("/v1/availability?benchmark=latency&cpus=0&size=2T").json
    assert shown["busy"] and [b["kind"] for b in shown["blockers"]] == ["memory"], shown
    assert not daemon.get("/v1/availability?benchmark=latency&cpus=0&size=1").json["blockers"]
    assert daemon.post("/v1/runs", {**spec, "size": "1"}).status == 202
    assert daemon.post(f"/v1/runs/{first}/cancel").status in (200, 202)


def test_a_long_list_of_cpus_is_requested_whole(make_daemon):
    """Of 1,024 CPUs, the most that a run has. One that is not there is named, although it is the last."""
    daemon = make_daemon({**fake_bench_env(), "HWLOC_SYNTHETIC": "pack:4 [numa(memory=68719476736)] core:256 pu:1"}, FREE)
    first = [str(cpu) for cpu in range(1023)]
    there = numaprobe(daemon, "availability", f"--cpus={','.join([*first, '1023'])}", "--size=1")
    assert there.returncode == 6 and "of this machine (synthetic)" in there.stdout, there  # and else nothing
    gone = numaprobe(daemon, "availability", f"--cpus={','.join([*first, '5000'])}", "--size=1")
    assert gone.returncode == 2 and "5000" in gone.stderr, gone


def test_command_line(make_daemon):
    daemon = closed(make_daemon)
    avail = numaprobe(daemon, "availability", "--size=1-4")
    assert avail.returncode == 6 and "The node is busy. Try again in" in avail.stdout and "outside_hours" in avail.stdout
    answer = numaprobe(daemon, "availability", "-o", "json")
    assert answer.returncode == 6 and json.loads(answer.stdout)["blockers"]
    run = numaprobe(daemon, "run", "--size=1-4")
    assert run.returncode == 6 and "is blocked: runs may start at" in run.stderr
    assert "--wait-for-node=10m waits" in run.stderr and "admission = warn" in run.stderr

    # No setting lets a run start that has too little memory, and its sizes can be read.
    short = numaprobe(make_daemon({**fake_bench_env(), "NUMAPROBED_ADMISSION": "warn"}, FREE), "run", "matrix", "--size=2T", "--quick", "--dry-run")
    assert short.returncode == 6 and "is blocked: " in short.stderr and " need " in short.stderr, short
    assert "of up to 0 MiB" not in short.stderr and "admission = warn" not in short.stderr, short
    avail = numaprobe(daemon, "availability", "matrix", "--size=2T")
    assert avail.returncode == 6 and "too little free memory" in avail.stdout and "Try again" not in avail.stdout, avail
    assert re.search(r"^refuses +memory +[0-9.]+T ", avail.stdout, re.M), avail.stdout

    def waited():
        """A command that on a busy machine is late by 10 s sees nothing of the waiting."""
        done = numaprobe(daemon, "run", "--size=1-4", "--wait-for-node=10")
        assert done.returncode == 1 and "busy for 10 s" in done.stderr, done
        return "waiting for the node: runs may start at" in done.stderr
    until(waited)
    assert "outside_hours" in numaprobe(daemon, "doctor").stdout
    free = make_daemon(fake_bench_env())
    avail = numaprobe(free, "avail")
    # In a container a note follows, that other processes are hidden.
    assert avail.returncode == 0 and avail.stdout.splitlines()[0] == "A run would start now."


@pytest.mark.parametrize("arg,words", [
    ("--admit-load=perhaps", "refuse, warn or ignore"), ("--admit-load=refuse:x", "admit_load"),
    ("--hours=always", "20:00-06:00"), ("--host-lock=here", "absolute"), ("--admission=no", "ignore, warn, refuse"),
    ("--admit-nothing=warn", "--admit-nothing")])
def test_wrong_settings_are_named(numaprobed, tmp_path, arg, words):
    done = subprocess.run([numaprobed, f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", arg],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and words in done.stderr, done.stderr
