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
from test_access import cli
from test_fleetd import FLEETD
from test_tls import Kept, context, openssl, pki, put, reload, renew, secure, shown, sign, until_of  # noqa: F401

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

    def make(certificate, *options, host="localhost", daemon=None):
        daemon = daemon or secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem",
                                  "--tls-client-scope=CN=fleetd.example:read")
        home = tmp_path / f"collector{len(made)}"
        home.mkdir()
        name = socket.gethostname()
        (home / "list").write_text(f"{name} url=https://{host}:{daemon.tls}\n")
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


def test_a_check_warns_of_expired_certificates_which_a_start_uses(pki, tmp_path):  # noqa: F811
    """For nodes, and for clients."""
    done = subprocess.run([FLEETD, f"--state-dir={tmp_path}", "--nodes=n1", "--url=https://%h:7443", "--check-config",
                           *(f"--{name}-{file}={pki}/expired.{end}" for name in ("node", "tls") for file, end in (("certificate", "pem"), ("key", "key")))],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and [line.partition(" expired at ")[0] for line in done.stderr.splitlines()] == [
        f"numaprobe-fleetd: warning: {name}_certificate:" for name in ("node", "tls")], done


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


def test_a_node_with_the_certificate_of_another_one_gives_nothing(serve, pki):  # noqa: F811
    """Its certificate is of the same authority, but of another name than was requested."""
    c = serve("fleetd.example", host="node2.localhost")  # an address of this machine for libcurl
    node = until(lambda: (n := c.get(context(pki, "client"), f"/v1/fleet/nodes/{c.node}"))[0] == 200 and n[1]["problem"] and n[1])
    assert "belongs to another host" in node["problem"] and node["received"] is None, node


@pytest.fixture
def named(make_daemon, pki, tmp_path):  # noqa: F811
    """named(name) -> a daemon with a certificate of that name and of no address, and a hosts_file with this machine in it."""
    def make(name):
        node = socket.gethostname()
        (tmp_path / "names").write_text(f"subjectAltName=DNS:{name}\nauthorityKeyIdentifier=keyid\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=node",
                "-keyout", tmp_path / "node.key", "-out", tmp_path / "node.csr")
        openssl("x509", "-req", "-in", tmp_path / "node.csr", "-CA", pki / "ca.pem", "-CAkey", pki / "ca.key", "-CAcreateserial",
                "-days", 2, "-extfile", tmp_path / "names", "-out", tmp_path / "node.pem")
        (tmp_path / "node.key").chmod(0o600)
        (tmp_path / "hosts").write_text(f"127.0.0.1 {node}\n")
        return secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem", f"--host-names={node}",
                      "--tls-client-scope=CN=fleetd.example:read", f"--tls-certificate={tmp_path}/node.pem",
                      f"--tls-key={tmp_path}/node.key"), tmp_path / "hosts"
    return make


@pytest.mark.parametrize("known", [True, False])
def test_the_certificate_of_a_node_in_hosts_file_is_that_of_its_name(serve, named, pki, known):  # noqa: F811
    node = socket.gethostname()
    daemon, hosts = named(node if known else "another.example")
    c = serve("fleetd.example", f"--hosts-file={hosts}", host="%h", daemon=daemon)
    seen = until(lambda: (n := c.get(context(pki, "client"), f"/v1/fleet/nodes/{node}"))[0] == 200 and
                 (n[1]["problem"] or n[1]["state"] == "up") and n[1])
    assert seen["url"] == f"https://{node}:{daemon.tls}"
    assert seen["problem"] == "" if known else "belongs to another host" in seen["problem"], seen
    done = cli("fleet", "status", "-w", node, f"--fleet-url=https://%h:{daemon.tls}", f"--hosts-file={hosts}",
                     f"--cacert={pki}/ca.pem", f"--cert={pki}/fleetd.example.pem", f"--key={pki}/fleetd.example.key")
    assert (done.returncode == 0) == known and ("belongs to another host" in done.stderr + done.stdout) != known, done


def test_a_lower_collector_in_hosts_file_is_found(serve, named, pki, tmp_path):  # noqa: F811
    """Its feed is read by the collector, its nodes by the process that reads sources: both look there."""
    daemon, _ = named("campus.example")
    lower = serve("fleetd.example", f"--tls-certificate={tmp_path}/node.pem", f"--tls-key={tmp_path}/node.key",
                  "--tls-client-scope=CN=fleetd.example:read", "--host-names=campus.example", daemon=daemon)
    (tmp_path / "above").write_text("127.0.0.1 campus.example\n")
    home = tmp_path / "upper"
    home.mkdir()
    upper = Served(home, f"--source=collector:https://campus.example:{lower.port}", f"--hosts-file={tmp_path}/above",
                   f"--node-ca={pki}/ca.pem", f"--node-certificate={pki}/fleetd.example.pem", f"--node-key={pki}/fleetd.example.key",
                   "--anonymous=none", "--listen=https://127.0.0.1:0", f"--tls-certificate={pki}/daemon.pem",
                   f"--tls-key={pki}/daemon.key", f"--tls-client-ca={pki}/ca.pem", "--tls-client-scope=CN=client:read")
    try:
        seen = []

        def found():
            """It may read them before the lower collector has read its own sources, which says then: later."""
            seen.append(s := upper.get(context(pki, "client"), "/v1/fleet/status")[1])
            return (s["sources_problem"], s["nodes"]) == ("", 1) and s["collectors"][0]["state"] != "new" and not s["collectors"][0]["problem"]
        try:
            until(found)
        except AssertionError:
            raise AssertionError(seen[-1]) from None
    finally:
        upper.close()


# ---- Files that are renewed


@pytest.fixture
def renewable(serve, pki, tmp_path):  # noqa: F811
    """A collector whose files of TLS are copies, in tmp_path: of its listener, and for nodes."""
    renew(pki, tmp_path)
    sign(pki, tmp_path, "renewed", days=1)
    for name, copy in (("ca.pem", "clients.pem"), ("ca.pem", "nodes.pem"), ("fleetd.example.pem", "own.pem"), ("fleetd.example.key", "own.key")):
        put(pki / name, tmp_path / copy)

    def make(daemon=None):
        return serve("fleetd.example", f"--tls-certificate={tmp_path}/daemon.pem", f"--tls-key={tmp_path}/daemon.key",
                     f"--tls-client-ca={tmp_path}/clients.pem", f"--node-ca={tmp_path}/nodes.pem",
                     f"--node-certificate={tmp_path}/own.pem", f"--node-key={tmp_path}/own.key", daemon=daemon)
    return make


def reload_with(c, said):
    """Waits until the log says it once more."""
    before = c.log.read_text().count(said)
    c.process.send_signal(signal.SIGHUP)
    until(lambda: c.log.read_text().count(said) > before)


def problem(c, pki, said):  # noqa: F811
    """Waits until the node has one with these words; "" for none, and that it is up."""
    def found():
        status, node = c.get(context(pki, "client"), f"/v1/fleet/nodes/{c.node}")
        return status == 200 and (said in node["problem"] if said else node["state"] == "up" and not node["problem"])
    until(found)


def test_renewed_files_are_used_after_a_reload(renewable, pki, tmp_path):  # noqa: F811
    c = renewable()
    client = context(pki, "client")
    kept = Kept(c.port, client)
    assert kept.status("/v1/fleet/status") == 200
    renew(tmp_path, tmp_path, "renewed")
    assert shown(c.port, client) == "daemon", "without a reload it is the old one"
    reload_with(c, f'event=tls.certificate text="the files of TLS have changed and are in use" until={until_of(tmp_path / "renewed.pem")}')
    assert shown(c.port, client) == "renewed"
    put(pki / "other.pem", tmp_path / "clients.pem")
    reload_with(c, "event=tls.certificate text=")
    assert c.get(client, "/v1/fleet/status")[0] == 401
    assert kept.status("/v1/fleet/status") == 200, "an open connection is known as it was"


def test_wrong_files_at_a_reload_change_nothing(renewable, pki, tmp_path):  # noqa: F811
    c = renewable()
    client = context(pki, "client")
    for source, target, mode, said in (("expired.pem", "daemon.pem", 0o600, 'member=tls_certificate text="tls_certificate and tls_key cannot be used'),
                                       ("daemon.pem", "daemon.pem", 0o600, ""), ("daemon.key", "daemon.key", 0o644, 'member=tls_key text="tls_key: '),
                                       ("daemon.key", "daemon.key", 0o600, ""), ("ca.key", "clients.pem", 0o600, 'member=tls_client_ca text="tls_client_ca ')):
        put(pki / source, tmp_path / target, mode)
        if said:
            reload_with(c, said)
        assert shown(c.port, client) == "daemon" and c.get(client, "/v1/fleet/status")[0] == 200
    put(pki / "ca.pem", tmp_path / "clients.pem")
    renew(pki, tmp_path, "expired")
    reload_with(c, 'member=tls_certificate text="tls_certificate: expired at 2021-01-01T00:00:00Z; renew it"')
    assert shown(c.port, client) == "daemon"


def test_renewed_files_for_nodes_are_used(renewable, make_daemon, pki, tmp_path):  # noqa: F811
    """The CA by which it knows nodes, and the certificate that it shows to them."""
    sign(pki, tmp_path, "elsewhere", ca="other")
    for end in ("pem", "key"):
        put(pki / f"daemon.{end}", tmp_path / f"node.{end}")
    daemon = secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem", "--tls-client-scope=CN=fleetd.example:read",
                    f"--tls-certificate={tmp_path}/node.pem", f"--tls-key={tmp_path}/node.key")
    c = renewable(daemon)
    problem(c, pki, "")
    for end in ("pem", "key"):
        put(tmp_path / f"elsewhere.{end}", tmp_path / f"node.{end}")
    reload(daemon)
    problem(c, pki, "not trusted")
    put(pki / "other.pem", tmp_path / "nodes.pem")
    c.process.send_signal(signal.SIGHUP)
    problem(c, pki, "")
    put(pki / "client.pem", tmp_path / "own.pem")
    reload_with(c, 'event=reload code=usage member=node_certificate text="node_certificate and node_key cannot be used')
    problem(c, pki, "the files of TLS")
    put(pki / "client.key", tmp_path / "own.key")
    problem(c, pki, "401")
    for end in ("pem", "key"):
        put(pki / f"expired.{end}", tmp_path / f"own.{end}")
    reload_with(c, 'event=reload code=usage member=node_certificate text="node_certificate: expired at 2021-01-01T00:00:00Z; renew it"')
    for end in ("pem", "key"):
        put(pki / f"fleetd.example.{end}", tmp_path / f"own.{end}")
    problem(c, pki, "")
