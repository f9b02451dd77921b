# SPDX-License-Identifier: Apache-2.0
"""Estimates of plans for large machines, beside a bench that walks the loops of METHOD on a model of the same machine
(tests/fakes/bench_time.py). On the machine of the tests, tests/perf/estimates.py compares them with real runs."""
import json
import math
import shlex
import subprocess

import pytest

from conftest import FAKE_BENCH, PATIENCE, Daemon, fake_bench_env

# Of each machine: what the model has to know of it, and the same for hwloc.
MACHINES = {"24 nodes": ("32M:8:1", "pack:2 group:12 [numa(memory=34359738368)] l3:1(size=33554432) core:8 pu:1"),
            "512 CPUs": ("32M:16:4", "pack:2 group:4 [numa(memory=68719476736)] l3:4(size=33554432) core:16 pu:1"),
            "16 sockets": ("38M:28:1", "pack:16 [numa(memory=68719476736)] l3:1(size=39845888) core:28 pu:1")}
SPECS = {"latency": {"size": "1,64,512", "launcher": "processes"}, "matrix": {"launcher": "processes"},
         "bandwidth": {"launcher": "processes"}, "c2c": {"pairs": "all", "launcher": "processes"}, "pingpong": {"pairs": "all"},
         "firsttouch": {"launcher": "processes"}, "pagefault": {"launcher": "processes"}, "atomics": {"launcher": "processes"},
         "loaded": {"launcher": "processes"}, "hierarchy": {"launcher": "processes"}, "scan": {"launcher": "processes"}}


@pytest.fixture(scope="module", params=MACHINES)
def machine(request, numaprobed, tmp_path_factory):
    model, synthetic = MACHINES[request.param]
    folder = tmp_path_factory.mktemp("bench")
    bench = folder / "fake_bench"
    bench.symlink_to(FAKE_BENCH)
    bench.with_suffix(".behaviour").write_text(f"timed {model}")
    daemon = Daemon(numaprobed, tmp_path_factory.mktemp("numaprobed"), {**fake_bench_env(), "HWLOC_SYNTHETIC": synthetic}).start()
    yield daemon, bench
    assert daemon.stop() == 0, "\n".join(daemon.log)


def walked_s(command, bench, folder):
    """What the modelled bench takes for this command. One process speaks for all ranks: mpirun is left out."""
    words, channel = shlex.split(command), folder / "records"
    options = [f"--channel={channel}" if word.startswith("--channel=") else word for word in words[words.index(str(FAKE_BENCH)) + 1:]]
    done = subprocess.run([bench, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    [end] = [json.loads(line) for line in channel.read_text().splitlines()]
    return sum(end["phases_ms"].values()) / 1e3


def test_each_benchmark_is_walked(machine):
    assert {b["name"] for b in machine[0].get("/v1/benchmarks").json["benchmarks"]} == set(SPECS)


@pytest.mark.parametrize("effort", [{}, {"quick": True}], ids=["default", "quick"])
@pytest.mark.parametrize("benchmark", SPECS)
def test_an_estimate_is_what_the_loops_take(machine, benchmark, effort, tmp_path):
    daemon, bench = machine
    dry = daemon.post("/v1/runs?dry_run=true", {"benchmark": benchmark, **SPECS[benchmark], **effort}).json
    walked = walked_s(dry["command"], bench, tmp_path)
    assert dry["plan"]["estimate_s"] == pytest.approx(walked, rel=0.1), dry["command"]


# Of the usual time. A third is kept where cells may be left out; most of latency's time here is populating and building.
BUDGETS = {"matrix": 1 / 3, "c2c": 1 / 3, "pingpong": 1 / 3, "latency": 0.85}


@pytest.mark.parametrize("benchmark", SPECS)
def test_a_budget_is_kept(machine, benchmark, tmp_path):
    """Effort is lowered, and where that is not enough cells are left out."""
    daemon, bench = machine
    asked = {"benchmark": benchmark, **SPECS[benchmark]}
    usual = daemon.post("/v1/runs?dry_run=true", asked).json["plan"]["estimate_s"]
    budget = math.ceil(usual * BUDGETS.get(benchmark, 0.6))
    dry = daemon.post("/v1/runs?dry_run=true", {**asked, "budget_s": budget}).json
    assert "plan" in dry, dry
    assert budget >= usual or dry["plan"]["shortened"], dry["plan"]
    assert walked_s(dry["command"], bench, tmp_path) <= 1.1 * budget, dry["command"]
