# SPDX-License-Identifier: Apache-2.0
"""numaprobed on a node of a real Slurm: a run that a job requests is measured within that job, others are refused."""
import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["NUMAPROBE_BUILD"])
CLIENT = BUILD / "client" / "numaprobe"
START = """mkdir -m 711 -p /run/np
export NUMAPROBE_BENCH={bench}
exec {daemon} --config=/dev/null --listen= --socket=/run/np/api.sock --state-dir=/run/np/state --run-dir=/run/np/run \\
    --job-user=root --host-lock=none {admit}
"""
# Other work on this machine is no job of this Slurm.
ADMIT = ["busy_cpus", "load", "cpu_pressure", "memory_pressure", "kubernetes_pods", "other_instance", "cpu_quota",
         "frequency_capped", "throttled", "steal", "swap", "disturbing"]
needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two jobs need two CPUs")


@pytest.fixture(scope="module", name="daemon")
def serving(cluster):
    """The daemon in the cluster's namespaces. It ends with its standard input's writer: this process."""
    script = START.format(bench=BUILD / "bench" / "numa_bench", daemon=BUILD / "daemon" / "numaprobed",
                          admit=" ".join(f"--admit-{k.replace('_', '-')}=ignore" for k in ADMIT))
    p = cluster.begin("bash", "-c", script)
    for line in p.stderr:
        if "event=ready" in line:
            break
    yield p
    p.terminate()
    p.wait(120)


def end_jobs(cluster):
    cluster.run("scancel", "--user=root")
    cluster.run("timeout", "60", "sh", "-c", "while squeue -h | grep -q .; do sleep 0.1; done")


def request(cluster, *words, srun=(), **options):
    """A run by the command line, inside a job where `srun` has words."""
    before = ["srun", *srun] if srun else []
    return cluster.run(*before, str(CLIENT), "run", "latency", "--size=64K", "--quick", "--launcher=processes", "-o", "json", *words,
                       env={"NUMAPROBE_URL": "unix:/run/np/api.sock"}, **options)


def shown(cluster, run):
    done = cluster.run(str(CLIENT), "show", str(run), "-o", "json", env={"NUMAPROBE_URL": "unix:/run/np/api.sock"})
    return json.loads(done.stdout)


def test_without_a_job_the_node_is_free(cluster, daemon):
    done = request(cluster, "--dry-run")
    assert done.returncode == 0, done.stderr


@needs_two
def test_a_job_requests_a_run_of_its_own_cpus(cluster, daemon):
    done = request(cluster, srun=["--ntasks=1", "--cpus-per-task=1", "--cpu-bind=cores"])
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    run = newest(cluster)
    text, = [c["text"] for c in run["conditions"] if c["kind"] == "in_job"]
    assert re.search(r"inside a job of Slurm: measured on its CPUs \d and NUMA nodes 0", text), text
    assert run["ranks"] == 1 and not [c for c in run["conditions"] if c["kind"] in ("batch_job", "forced")], run


@needs_two
def test_cpus_of_others_are_refused(cluster, daemon):
    words = ["sh", "-c", f"{CLIENT} run latency --size=64K --quick --dry-run --cpus=0,1"]
    done = cluster.run("srun", "--ntasks=1", "--cpus-per-task=1", "--cpu-bind=cores", *words,
                       env={"NUMAPROBE_URL": "unix:/run/np/api.sock"})
    assert done.returncode == 2 and "outside the cpuset of the daemon or of the requesting job" in done.stderr, (done.returncode, done.stderr)


@needs_two
def test_another_job_on_the_node_refuses(cluster, daemon):
    other = cluster.begin("srun", "--ntasks=1", "--cpus-per-task=1", "--cpu-bind=cores", "sh", "-c", "echo running >&2; sleep 600")
    try:
        assert other.stderr.readline() == "running\n"
        outside = request(cluster)
        assert outside.returncode == 6 and "1 job of Slurm on this node" in outside.stderr, outside
        inside = request(cluster, srun=["--ntasks=1", "--cpus-per-task=1", "--cpu-bind=cores"])
        assert inside.returncode == 6 and "1 job of Slurm on this node" in inside.stderr, inside
    finally:
        end_jobs(cluster)
        other.wait(120)


def newest(cluster):
    return shown(cluster, "last")


@needs_two
def test_a_run_ends_with_its_job(cluster, daemon):
    job = cluster.begin("srun", "--ntasks=1", "--cpus-per-task=1", str(CLIENT), "run", "latency", "--size=1M-64M",
                        "--cell-ms=60000", "--min-samples=10000", "--launcher=processes", "--keep-on-interrupt",
                        env={"NUMAPROBE_URL": "unix:/run/np/api.sock"})
    for line in job.stderr:
        if line.strip() in ("running", "measure", "populate"):
            break
    end_jobs(cluster)
    job.wait(120)
    done = cluster.run(str(CLIENT), "show", "last", "--follow", env={"NUMAPROBE_URL": "unix:/run/np/api.sock"})
    run = newest(cluster)
    assert run["state"] == "failed" and "has ended" in run["error"]["text"], (done, run)
