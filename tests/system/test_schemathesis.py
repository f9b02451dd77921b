# SPDX-License-Identifier: Apache-2.0
"""The daemon against its own description, by requests that schemathesis makes of it.

NUMAPROBE_EXAMPLES: how many a route (50; the long form takes 1000). Needs build/schemathesis (tools/schemathesis.sh).
"""
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT, Daemon, fake_bench_env

PROGRAM = ROOT / "build" / "schemathesis" / "bin" / "schemathesis"
EXAMPLES = os.environ.get("NUMAPROBE_EXAMPLES", "50")
# A value may fit the description and yet not this node, or the other values: then 404, 409 or 422 is right.
EXCLUDED = ["--exclude-checks=positive_data_acceptance"]
SEED = os.environ.get("NUMAPROBE_SEED", "1")


# TRACE and methods that nobody knows are no requests here: 400 and the end of the connection, not 405.
SETTINGS = """
[phases.coverage]
unexpected-methods = ["GET", "PUT", "POST", "DELETE", "PATCH"]
"""


@pytest.fixture
def strict(numaprobed, tmp_path_factory):
    """One that wants a token for everything, and the token that may do everything."""
    d = Daemon(numaprobed, tmp_path_factory.mktemp("strict"), fake_bench_env(), ["--anonymous=none"]).start()
    token = d.request("POST", "/v1/tokens", {"name": "all", "scope": "admin"}, unix=True).json["token"]
    yield d, {"Authorization": f"Bearer {token}"}
    assert d.stop() == 0, "\n".join(d.log)


@pytest.mark.skipif(not PROGRAM.exists(), reason="tools/schemathesis.sh could not get schemathesis")
def test_description(strict, tmp_path):
    """What it answers is what it says it answers; what it says it refuses, it refuses."""
    daemon, rights = strict
    asked = daemon.request("POST", "/v1/runs?wait=60", {"benchmark": "latency", "size": "1-2", "ranks": "one-per-numa"},
                           rights)
    assert asked.json["state"] == "succeeded", asked.body
    daemon.request("PUT", "/v1/baselines/x", {"runs": [1]}, rights)
    description = tmp_path / "openapi.json"
    document = daemon.request("GET", "/openapi.json", headers=rights).json
    # An event stream lasts as long as its run, which may wait in the queue.
    document["paths"].pop("/v1/runs/{id}/events")
    description.write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    done = subprocess.run(
        [str(PROGRAM), "run", str(description), "--url", f"http://127.0.0.1:{daemon.port}",
         "--header", "Authorization: " + rights["Authorization"], "--phases=examples,coverage,fuzzing",
         "--max-examples", EXAMPLES, "--seed", SEED, "--no-color", "--request-timeout=30", *EXCLUDED],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=3000)
    print(done.stdout)
    # A list of 1,024 nodes is a parameter of a query too. Made of percent-encoded characters it is a head that the library
    # refuses before we see it, with a text of its own.
    failed = re.findall(r"^\d+\. Test Case ID", done.stdout, re.M)
    refused = re.findall(r"^\[414\] URI Too Long", done.stdout, re.M)
    only_refused = failed and len(refused) == len(failed) and not re.search(r"^=+ ERRORS =+$", done.stdout, re.M)
    assert done.returncode == 0 or only_refused, done.stdout + done.stderr
    assert daemon.get("/healthz").status == 200
