# SPDX-License-Identifier: Apache-2.0
"""The collector and TLS, with real certificates: to a real daemon, which knows it by its certificate, and to its own
clients."""
import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from conftest import PATIENCE, until, without_fault
from test_fleetd import FLEETD
from test_tls import context, pki, secure  # noqa: F401

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl to make certificates with")


class Served:
    """A collector of one node, whose own listener has TLS as well."""

    def __init__(self, home, *options):
        self.log = home / "log"
        self.process = subprocess.Popen([FLEETD, f"--state-dir={home}/state", f"--run-dir={home}/run", "--every=1", *options],
                                        stderr=open(self.log, "w"), stdin=subprocess.DEVNULL)
        found = until(lambda: self.process.poll() is not None or re.search(r"ready listen=https://127\.0\.0\.1:(\d+)",
                                                                           self.log.read_text()))
        assert self.process.poll() is None, self.log.read_text()
        self.port = int(found[1])

    def get(self, context, path):  # noqa: F811
        c = http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE, context=context)
        c.request("GET", path)
        response = c.getresponse()
        return response.status, json.loads(response.read())

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()
        without_fault(self.log.read_text())


@pytest.fixture
def serve(tmp_path, make_daemon, pki):  # noqa: F811
    """serve(certificate, *options) -> a collector that shows the certificate to a daemon which knows fleetd.example."""
    made = []

    def make(certificate, *options):
        daemon = secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem",
                        "--tls-client-scope=CN=fleetd.example:read")
        home = tmp_path / f"collector{len(made)}"
        home.mkdir()
        name = socket.gethostname()
        (home / "list").write_text(f"{name} url=https://localhost:{daemon.tls}\n")
        made.append(Served(home, f"--source=file:{home}/list", "--url=https://%h:7443", f"--node-ca={pki}/ca.pem",
                           f"--node-certificate={pki}/{certificate}.pem", f"--node-key={pki}/{certificate}.key",
                           "--anonymous=none", "--listen=https://127.0.0.1:0", f"--tls-certificate={pki}/daemon.pem",
                           f"--tls-key={pki}/daemon.key", f"--tls-client-ca={pki}/ca.pem",
                           "--tls-client-scope=CN=client:read", *options))
        made[-1].node = name
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("certificate, key, said", [
    ("client.pem", "daemon.key", "node_certificate and node_key cannot be used"),
    ("client.key", "client.key", "node_certificate and node_key cannot be used"),
    ("client.pem", "loose.key", "node_key: {pki}/loose.key must be a file of at most 1 MiB that others cannot use"),
    ("client.pem", "nowhere", "node_key: {pki}/nowhere: No such file"),
    ("client.pem", ".", "node_key: {pki} must be a file"), ("client.pem", "", "node_certificate and node_key need each other")])
def test_a_certificate_and_a_key_that_do_not_fit_are_refused(pki, tmp_path, certificate, key, said):  # noqa: F811
    if key == "loose.key":
        shutil.copy(pki / "client.key", pki / key)
        (pki / key).chmod(0o644)
    options = [FLEETD, f"--state-dir={tmp_path}/state", f"--run-dir={tmp_path}/run", "--nodes=n1", "--url=https://%h:7443",
               "--listen=127.0.0.1:0", f"--node-certificate={pki}/{certificate}", f"--node-key={key and pki / key}"]
    for more, status in (["--check-config"], (2,)), ([], (1, 2)):
        done = subprocess.run([*options, *more], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode in status and said.format(pki=pki) in done.stderr, (more, done.returncode, done.stderr)


def test_both_ways(serve, pki):  # noqa: F811
    c = serve("fleetd.example")
    status = until(lambda: (s := c.get(context(pki, "client"), "/v1/fleet/status")[1])["states"]["up"] == 1 and s)
    assert status["nodes"] == 1 and status["failed"] == 0
    assert c.get(context(pki), "/v1/fleet/status")[0] == 401, "no certificate"
    assert c.get(context(pki, "fleetd.example"), "/v1/fleet/status")[0] == 401, "a certificate without a scope"
    with pytest.raises(ssl.SSLCertVerificationError):
        c.get(ssl.create_default_context(), "/v1/fleet/status")


@pytest.mark.parametrize("certificate, said", [("client", "401"), ("stranger", ""), ("expired", ""), ("self", "")])
def test_a_node_that_does_not_know_the_collector_gives_nothing(serve, pki, certificate, said):  # noqa: F811
    c = serve(certificate)
    node = until(lambda: (n := c.get(context(pki, "client"), f"/v1/fleet/nodes/{c.node}"))[0] == 200 and n[1]["problem"] and n[1])
    assert said in node["problem"] and node["history_id"] == "" and node["received"] is None, node


def test_a_node_that_the_collector_does_not_know_gets_nothing(serve, pki):  # noqa: F811
    c = serve("fleetd.example", f"--node-ca={pki}/other.pem")
    node = until(lambda: (n := c.get(context(pki, "client"), f"/v1/fleet/nodes/{c.node}"))[0] == 200 and n[1]["problem"] and n[1])
    assert "not trusted" in node["problem"], node
