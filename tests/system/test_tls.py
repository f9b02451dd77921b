# SPDX-License-Identifier: Apache-2.0
"""TLS: certificates of the daemon and of clients, by the command line and by Python's own TLS."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from conftest import PATIENCE, Bench, fake_bench_env
from test_access import cli, refused

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl to make certificates with")


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def dated(folder, name, common_name, year, *issuer):
    """A certificate of that year alone. `openssl ca` can date one in the past or ahead in every release."""
    (folder / "index").write_text("")
    (folder / "ca.cnf").write_text(f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index\nnew_certs_dir={folder}\nrand_serial=yes\n"
                                   "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    request(folder, name, common_name)
    openssl("ca", "-batch", *issuer, "-config", folder / "ca.cnf", "-in", folder / f"{name}.csr", "-startdate", f"{year}0101000000Z",
            "-enddate", f"{year + 1}0101000000Z", "-extfile", folder / "names", "-notext", "-out", folder / f"{name}.pem")


def request(folder, name, common_name):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={common_name}",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """An authority, certificates of the daemon and of clients, one that somebody else signed, one that has expired, and
    one that signed itself."""
    folder = tmp_path_factory.mktemp("pki")
    for ca in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj", f"/CN={ca}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", folder / f"{ca}.key", "-out", folder / f"{ca}.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nsubjectKeyIdentifier=hash\n"
                                  "authorityKeyIdentifier=keyid\n")
    for name, ca in (("daemon", "ca"), ("client", "ca"), ("stranger", "other"), ("fleetd.example", "ca")):
        request(folder, name, "fleetd.example" if name == "stranger" else name)
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / f"{ca}.pem", "-CAkey", folder / f"{ca}.key",
                "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out", folder / f"{name}.pem")
    dated(folder, "expired", "fleetd.example", 2020, "-cert", folder / "ca.pem", "-keyfile", folder / "ca.key")
    dated(folder, "early", "early", 2090, "-selfsign", "-keyfile", folder / "early.key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj",
            "/CN=fleetd.example", "-keyout", folder / "self.key", "-out", folder / "self.pem")
    for key in folder.glob("*.key"):
        key.chmod(0o600)
    return folder


def files(pki):
    return [f"--tls-certificate={pki}/daemon.pem", f"--tls-key={pki}/daemon.key"]


def secure(make_daemon, pki, *args):
    """A daemon with a plain address and one with TLS; the latter's port is `tls`."""
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read", "--listen=127.0.0.1:0,https://127.0.0.1:0", *files(pki), *args])
    daemon.tls = int(re.search(r"https://127\.0\.0\.1:(\d+)", "\n".join(daemon.log))[1])
    return daemon


def context(pki, client=None):
    c = ssl.create_default_context(cafile=f"{pki}/ca.pem")
    if client:
        c.load_cert_chain(f"{pki}/{client}.pem", f"{pki}/{client}.key")
    return c


def ask(daemon, context, method="GET", path="/v1/runs", body=None, **headers):
    c = http.client.HTTPSConnection("localhost", daemon.tls, timeout=PATIENCE, context=context)
    c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = c.getresponse()
    return answer.status, answer.read()


def test_it_serves(make_daemon, pki):
    daemon = secure(make_daemon, pki)
    assert ask(daemon, context(pki))[0] == 200
    assert daemon.get("/v1/runs").status == 200
    origin = f"https://localhost:{daemon.tls}"
    assert ask(daemon, context(pki), "POST", body="{}", Content_Type="application/json", Origin=origin)[0] == 401
    assert ask(daemon, context(pki), "POST", body="{}", Content_Type="application/json",
               Origin=origin.replace("https", "http"))[0] == 403
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(daemon, ssl.create_default_context())
    url = f"https://127.0.0.1:{daemon.tls}"
    assert cli("runs", f"--cacert={pki}/ca.pem", env={"NUMAPROBE_URL": url}).returncode == 0
    assert cli("runs", env={"NUMAPROBE_URL": url}).returncode == 3
    made = cli("token", "create", "x", "--scope=admin", daemon=daemon)
    assert made.returncode == 0, (made.stderr, daemon.log)
    token = made.stdout.strip()
    assert cli("token", "list", f"--cacert={pki}/ca.pem", env={"NUMAPROBE_URL": url, "NUMAPROBE_TOKEN": token}).returncode == 0


def test_large_answers_and_waiting_go_through(make_daemon, pki):
    daemon = secure(make_daemon, pki, "--anonymous=run")
    status, body = ask(daemon, context(pki), path="/openapi.json")
    assert status == 200 and len(body) > 40000
    status, body = ask(daemon, context(pki), "POST", "/v1/runs?wait=60", '{"benchmark":"latency","size":"1","cpus":"0"}',
                       Content_Type="application/json")
    assert status == 200 and b'"state":"succeeded"' in body


def test_old_versions_and_plain_text_are_refused(make_daemon, pki):
    daemon = secure(make_daemon, pki)
    old = context(pki)
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        ask(daemon, old)
    with socket.create_connection(("127.0.0.1", daemon.tls), timeout=PATIENCE) as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert b"HTTP/1.1 200" not in s.recv(4096)
        except ConnectionResetError:
            pass


def test_a_handshake_has_a_deadline(make_daemon, pki):
    daemon = secure(make_daemon, pki)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", daemon.tls), timeout=PATIENCE) as s:
        s.sendall(b"\x16\x03\x01")  # the beginning of a client's hello
        try:
            assert s.recv(1) == b""
        except ConnectionResetError:
            pass
    assert time.monotonic() - began > 9


def test_clients_show_certificates(make_daemon, pki):
    daemon = secure(make_daemon, pki, f"--tls-client-ca={pki}/ca.pem")
    assert ask(daemon, context(pki, "client"))[0] == 200
    assert ask(daemon, context(pki))[0] == 401, "none"
    try:
        assert ask(daemon, context(pki, "stranger"))[0] == 401, "one that somebody else signed"
    except (ssl.SSLError, ConnectionResetError, http.client.RemoteDisconnected):
        pass  # the library ended the handshake
    url = f"https://127.0.0.1:{daemon.tls}"
    mine = [f"--cacert={pki}/ca.pem", f"--cert={pki}/client.pem", f"--key={pki}/client.key"]
    assert cli("runs", *mine, env={"NUMAPROBE_URL": url}).returncode == 0
    assert cli("runs", mine[0], env={"NUMAPROBE_URL": url}).returncode == 4
    assert ask(daemon, context(pki, "client"), "POST", body="{}", Content_Type="application/json")[0] == 401, "no token"


def test_a_certificate_gives_a_scope(make_daemon, pki):
    """The common name of a certificate that the authority signed and that has not expired, and no other."""
    daemon = secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem",
                    "--tls-client-scope=CN=fleetd.example:read", "--tls-client-scope=CN=other.example:admin")
    post = {"method": "POST", "body": "{}", "Content_Type": "application/json"}
    fleetd = context(pki, "fleetd.example")
    assert ask(daemon, fleetd)[0] == 200
    status, problem = ask(daemon, fleetd, **post)
    assert status == 403 and b"the certificate of fleetd.example has scope read" in problem, "it may read, and no more"
    assert ask(daemon, context(pki, "client"))[0] == 401, "a name that has no scope"
    assert ask(daemon, fleetd, Authorization="Bearer np_wrong")[0] == 401, "a wrong token opens nothing"
    token = cli("token", "create", "ci", "--scope=run", daemon=daemon).stdout.strip()
    assert ask(daemon, fleetd, Authorization="Bearer " + token, **{**post, "body": '{"benchmark":"nope"}'})[0] in (400, 422)
    for wrong in ("stranger", "self", "expired"):
        try:
            assert ask(daemon, context(pki, wrong))[0] == 401, wrong
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
            pass  # the library ended the handshake


def test_a_certificate_for_servers_is_no_client_s(make_daemon, pki, tmp_path):
    """Of the authority, and of a name that has a scope; but its extended key usage names what it is for."""
    daemon = secure(make_daemon, pki, "--anonymous=none", f"--tls-client-ca={pki}/ca.pem", "--tls-client-scope=CN=fleetd.example:read")
    for usage, status in (("serverAuth", 401), ("codeSigning", 401), ("clientAuth", 200), ("serverAuth,clientAuth", 200)):
        (tmp_path / "usage").write_text(f"extendedKeyUsage={usage}\n")
        request(tmp_path, "one", "fleetd.example")
        openssl("x509", "-req", "-in", tmp_path / "one.csr", "-CA", pki / "ca.pem", "-CAkey", pki / "ca.key", "-CAcreateserial",
                "-days", 2, "-extfile", tmp_path / "usage", "-out", tmp_path / "one.pem")
        c = context(pki)
        c.load_cert_chain(f"{tmp_path}/one.pem", f"{tmp_path}/one.key")
        assert ask(daemon, c)[0] == status, usage


def test_scopes_of_certificates_are_checked(numaprobed, pki, tmp_path):
    ca = f"--tls-client-ca={pki}/ca.pem"
    for scope, said in (("fleetd:read", "must be CN=NAME:SCOPE"), ("CN=fleetd", "must be CN=NAME:SCOPE"),
                        ("CN=:read", "1 to 63 letters"), ("CN=a b:read", "1 to 63 letters"), ("CN=a:all", "read, run or admin"),
                        ("CN=a:none", "read, run or admin"), ("CN=a:push", 'tls_client_scope: the scope of "CN=a" must be read, run or admin, not "push"'),
                        ("CN=a:read,CN=a:run", "two scopes"),
                        ("CN=" + "a" * 100 + ":read", "must be CN=NAME:SCOPE")):
        assert said in refused(numaprobed, tmp_path, *files(pki), ca, f"--tls-client-scope={scope}"), scope
    assert "needs tls_client_ca" in refused(numaprobed, tmp_path, *files(pki), "--tls-client-scope=CN=a:read")


def test_beyond_loopback_with_tls(make_daemon, pki):
    """Needs no other word; without a token it tells that it is alive, and no more."""
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read", "--listen=127.0.0.1:0,https://0.0.0.0:0", *files(pki)])
    daemon.tls = int(re.search(r"https://0\.0\.0\.0:(\d+)", "\n".join(daemon.log))[1])
    assert ask(daemon, context(pki), path="/healthz")[0] == 200
    assert ask(daemon, context(pki))[0] == 401
    token = cli("token", "create", "far", daemon=daemon).stdout.strip()
    assert ask(daemon, context(pki), Authorization="Bearer " + token)[0] == 200


def test_the_client_names_what_is_wrong_with_tls(make_daemon, pki, tmp_path):
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read", "--listen=127.0.0.1:0,https://0.0.0.0:0", *files(pki)])
    port = int(re.search(r"https://0\.0\.0\.0:(\d+)", "\n".join(daemon.log))[1])
    plain = daemon.port
    trust = f"--cacert={pki}/ca.pem"
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate\n")
    for args, url, why in (([], f"https://127.0.0.1:{port}", "not trusted"),
                           ([f"--cacert={pki}/other.pem"], f"https://127.0.0.1:{port}", "not trusted"),
                           ([trust], f"https://127.0.0.2:{port}", "belongs to another host"),
                           ([f"--cacert={broken}"], f"https://127.0.0.1:{port}", "the files of TLS"),
                           ([trust, f"--cert={broken}", f"--key={broken}"], f"https://127.0.0.1:{port}", "the files of TLS"),
                           ([trust], f"https://127.0.0.1:{plain}", "the TLS handshake failed")):
        done = cli("runs", *args, env={"NUMAPROBE_URL": url})
        assert done.returncode == 3 and why in done.stderr, (args, url, done.stderr)
        assert ("--cacert=FILE names" in done.stderr) == (why == "not trusted"), done.stderr


def test_fleet_commands_with_tls_and_a_token(make_daemon, pki):
    """127.0.0.2 is the same daemon, whose certificate is not for that address: it fails, and the other counts."""
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=none", "--listen=127.0.0.1:0,https://0.0.0.0:0", *files(pki)])
    port = int(re.search(r"https://0\.0\.0\.0:(\d+)", "\n".join(daemon.log))[1])
    token = cli("token", "create", "fleet", "--scope=run", daemon=daemon).stdout.strip()
    env = {"NUMAPROBE_FLEET_URL": f"https://%h:{port}", "NUMAPROBE_CACERT": f"{pki}/ca.pem"}
    words = ["fleet", "run", "-w", "127.0.0.[1-2]", "--size=1", "-o", "json"]
    done = cli(*words, env={**env, "NUMAPROBE_TOKEN": token})
    found = json.loads(done.stdout)
    assert done.returncode == 9 and [n["state"] for n in found["nodes"]] == ["done", "failed"], (found, done.stderr)
    assert "belongs to another host" in done.stderr and token not in done.stdout + done.stderr, done.stderr
    assert "unauthorized: " in cli(*words, env=env).stderr, "without the token"
    clear = cli(*words, "--fleet-url=http://%h.example:7780", env={**env, "NUMAPROBE_TOKEN": token})
    assert clear.returncode == 2 and "not sent in clear" in clear.stderr, clear.stderr


def test_a_server_with_an_expired_certificate_starts_and_says_so(make_daemon, pki):
    daemon = make_daemon(fake_bench_env(), args=["--listen=127.0.0.1:0,https://127.0.0.1:0", f"--tls-certificate={pki}/expired.pem",
                                                 f"--tls-key={pki}/expired.key"])
    assert "tls_certificate: expired at " in "\n".join(daemon.log)


@pytest.mark.parametrize("name, said", [("expired", "tls_certificate: expired at 20"), ("early", "tls_certificate: is valid from 2090-"), ("daemon", "")])
def test_a_check_warns_of_a_certificate_that_a_start_serves(numaprobed, pki, tmp_path, name, said):
    """A reload, which begins with a check, may bring other settings."""
    (tmp_path / "conf").write_text(f"listen = https://127.0.0.1:0\ntls_certificate = {pki}/{name}.pem\ntls_key = {pki}/{name}.key\n")
    done = subprocess.run([str(numaprobed), f"--config={tmp_path}/conf", f"--state-dir={tmp_path}/s", f"--run-dir={tmp_path}/r", "--check-config"],
                          capture_output=True, text=True, timeout=PATIENCE)
    warned = done.stderr.startswith(f"numaprobed: warning: {tmp_path}/conf:2: {said}")
    assert done.returncode == 0 and (warned if said else not done.stderr), done


def test_wrong_files_are_named(numaprobed, pki, tmp_path):
    https = "--listen=https://127.0.0.1:0"
    assert "tls_certificate" in refused(numaprobed, tmp_path, https)
    assert "belong together" in refused(numaprobed, tmp_path, https, f"--tls-certificate={pki}/daemon.pem")
    assert "needs a tls_certificate" in refused(numaprobed, tmp_path, f"--tls-client-ca={pki}/ca.pem")
    assert "tls_key" in refused(numaprobed, tmp_path, https, f"--tls-certificate={pki}/daemon.pem", "--tls-key=/nonexistent")
    assert "not in PEM" in refused(numaprobed, tmp_path, https, "--tls-certificate=/etc/hostname", f"--tls-key={pki}/daemon.key")
    assert "do not match" in refused(numaprobed, tmp_path, https, f"--tls-certificate={pki}/daemon.pem", f"--tls-key={pki}/client.key")
    assert "cannot be used" in refused(numaprobed, tmp_path, https, f"--tls-certificate={pki}/ca.key", f"--tls-key={pki}/daemon.key")
    assert "has no certificate" in refused(numaprobed, tmp_path, https, *files(pki), f"--tls-client-ca={pki}/ca.key")
    loose = tmp_path / "loose.key"
    shutil.copy(pki / "daemon.key", loose)
    os.chmod(loose, 0o644)
    assert "others cannot use" in refused(numaprobed, tmp_path, https, f"--tls-certificate={pki}/daemon.pem", f"--tls-key={loose}")


# ---- Files that are renewed


def sign(pki, folder, name, ca="ca", days=2):
    """A certificate for localhost, and its key, as files of the folder."""
    request(folder, name, name)
    openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", pki / f"{ca}.pem", "-CAkey", pki / f"{ca}.key", "-CAcreateserial",
            "-days", days, "-extfile", pki / "names", "-out", folder / f"{name}.pem")
    (folder / f"{name}.key").chmod(0o600)


def put(source, target, mode=0o600):
    """In one step, as what renews certificates does it."""
    shutil.copy(source, f"{target}.next")
    os.chmod(f"{target}.next", mode)
    os.rename(f"{target}.next", target)


def renew(pki, folder, name="daemon", ends=("pem", "key")):
    for end in ends:
        put(pki / f"{name}.{end}", folder / f"daemon.{end}")


def until_of(certificate):
    """As the log has it."""
    said = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", certificate], check=True, capture_output=True, text=True).stdout
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ssl.cert_time_to_seconds(said.strip().partition("=")[2])))


def reload(daemon):
    """What the log has of it, without the times and the settings that took effect."""
    daemon.log.clear()
    daemon.looked_at = 0
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_line("event=reload (text=|code=)")
    return [re.sub(r".*?event=", "", line) for line in daemon.log if re.search(r"event=(reload|tls\.certificate)(?! .* was=)", line)]


READ_AGAIN = 'reload text="the configuration was read again"'


def in_use(certificate):
    return [f'tls.certificate text="the files of TLS have changed and are in use" until={until_of(certificate)}', READ_AGAIN]


class Kept:
    """A connection that stays open."""

    def __init__(self, port, context):
        self.connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)

    def status(self, path="/v1/runs"):
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        response.read()
        return response.status

    def open(self):
        """-> the certificate that the server shows"""
        self.connection.connect()
        return self.connection.sock.getpeercert()


def shown(port, context):
    """-> who the server says that it is, to a new connection"""
    kept = Kept(port, context)
    found = dict(pair for names in kept.open()["subject"] for pair in names)["commonName"]
    kept.connection.close()
    return found


@pytest.fixture
def renewable(make_daemon, pki, tmp_path):
    """renewable(*args) -> a daemon whose files of TLS are copies, in tmp_path."""
    renew(pki, tmp_path)
    put(pki / "ca.pem", tmp_path / "clients.pem")
    sign(pki, tmp_path, "renewed", days=1)

    def make(*args, **more):
        daemon = make_daemon(more.pop("env", fake_bench_env()), args=[
            "--anonymous=run", "--listen=127.0.0.1:0,https://127.0.0.1:0", f"--tls-certificate={tmp_path}/daemon.pem",
            f"--tls-key={tmp_path}/daemon.key", f"--tls-client-ca={tmp_path}/clients.pem", *args], **more)
        daemon.tls = int(re.search(r"https://127\.0\.0\.1:(\d+)", "\n".join(daemon.log))[1])
        return daemon
    return make


def test_renewed_files_are_used_after_a_reload(renewable, pki, tmp_path):
    """By connections that begin after it. Those that are open end with their next response, and a run continues."""
    bench = Bench(tmp_path)
    bench.behave("held")
    daemon = renewable(env=bench.env)
    assert reload(daemon) == [READ_AGAIN], "nothing has changed"
    run = daemon.post("/v1/runs", {"benchmark": "latency", "size": "1", "cpus": "0"}).json["id"]
    client = context(pki, "client")
    kept, stream = Kept(daemon.tls, client), Kept(daemon.tls, client).connection
    assert kept.status() == 200
    stream.request("GET", f"/v1/runs/{run}/events")
    events = stream.getresponse()
    assert events.readline()

    renew(tmp_path, tmp_path, "renewed")
    assert shown(daemon.tls, client) == "daemon", "without a reload it is the old one"
    assert reload(daemon) == in_use(tmp_path / "renewed.pem")
    assert shown(daemon.tls, client) == "renewed"
    assert reload(daemon) == [READ_AGAIN], "it is in use already"

    put(pki / "other.pem", tmp_path / "clients.pem")
    assert reload(daemon) == in_use(tmp_path / "renewed.pem"), "another client CA"
    assert ask(daemon, client)[0] == 401 and ask(daemon, context(pki, "stranger"))[0] == 200
    assert kept.status() == 200, "an open connection is known as it was, and ends with this response"
    assert kept.status() == 401, "it is another one"
    (tmp_path / "fake_bench.go").write_text("")
    assert b'"state":"succeeded"' in events.read(), "the stream has gone on to its end"


def test_many_renewals_with_connections_that_stay(renewable, pki, tmp_path):
    """Each connection has what it began with, until its next response."""
    daemon = renewable()
    client, kept = context(pki, "client"), []
    for i in range(10):
        renew(tmp_path if i % 2 else pki, tmp_path, "renewed" if i % 2 else "daemon")
        assert len(reload(daemon)) == (2 if i else 1)
        kept += [Kept(daemon.tls, client), Kept(daemon.tls, client)]
        assert [k.status() for k in kept] == [200] * len(kept)
    for k in kept[::3]:
        k.connection.close()
    assert [k.status() for k in kept[1::3] + kept[2::3]] == [200] * len(kept[1::3] + kept[2::3])


def test_a_handshake_under_way_at_a_reload_is_finished(renewable, pki, tmp_path):
    """It began before, and ends after: with the certificate of before, whose memory it still needs."""
    daemon = renewable()
    client = context(pki, "client")
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client.wrap_bio(into, out, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", daemon.tls), timeout=PATIENCE) as s:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = out.read()
        s.sendall(hello[:20])
        assert shown(daemon.tls, client) == "daemon", "it has come to the daemon: another one was served behind it"
        renew(tmp_path, tmp_path, "renewed")
        assert len(reload(daemon)) == 2
        s.sendall(hello[20:])
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                s.sendall(out.read())
                into.write(s.recv(65536))
        assert (("commonName", "daemon"),) in tls.getpeercert()["subject"]


@pytest.mark.parametrize("break_it, member, said", [
    (lambda pki, at: (at / "daemon.key").chmod(0o644), "tls_key", "that others cannot use (chmod o= it)"),
    (lambda pki, at: (at / "daemon.key").unlink(), "tls_key", "No such file"),
    (lambda pki, at: put(at / "renewed.pem", at / "daemon.pem"), "tls_certificate", "do not match"),
    (lambda pki, at: put(at / "renewed.key", at / "daemon.key"), "tls_certificate", "do not match"),
    (lambda pki, at: renew(pki, at, "expired"), "tls_certificate", "expired at 2021-01-01T00:00:00Z; renew it"),
    (lambda pki, at: renew(pki, at, "early"), "tls_certificate", "is valid from 2090-"),
    (lambda pki, at: put(pki / "ca.key", at / "daemon.pem"), "tls_certificate", "cannot be used"),
    (lambda pki, at: (at / "daemon.pem").write_text(""), "tls_certificate", "is not in PEM"),
    (lambda pki, at: put(pki / "ca.key", at / "clients.pem"), "tls_client_ca", "has no certificate"),
    (lambda pki, at: (at / "clients.pem").unlink(), "tls_client_ca", "No such file")])
def test_a_wrong_file_at_a_reload_changes_nothing(renewable, pki, tmp_path, break_it, member, said):
    """The whole reload is refused, as with any wrong setting."""
    config = tmp_path / "conf"
    config.write_text("keep_days = 1000\n")
    daemon = renewable(f"--config={config}")
    break_it(pki, tmp_path)
    config.write_text("keep_days = 2000\n")
    [refused] = reload(daemon)
    assert re.match(rf'reload code=\S+ member={member} text="{member}', refused) and said in refused, refused
    client = context(pki, "client")
    assert shown(daemon.tls, client) == "daemon" and ask(daemon, client)[0] == 200
    assert ask(daemon, context(pki, "stranger"))[0] == 401
    assert daemon.get("/v1/storage").json["retention"]["keep_days"] == 1000, "other settings stay too"
    renew(tmp_path, tmp_path, "renewed")
    put(pki / "ca.pem", tmp_path / "clients.pem")
    assert reload(daemon) == in_use(tmp_path / "renewed.pem")
    assert shown(daemon.tls, client) == "renewed"


def test_a_reload_says_that_the_certificate_in_use_has_expired(renewable, pki, tmp_path):
    """It is replaced, or the log has the same as at the start."""
    renew(pki, tmp_path, "expired")
    daemon = renewable()
    expired = 'tls.certificate problem="tls_certificate: expired at 2021-01-01T00:00:00Z; renew it"'
    assert reload(daemon) == [expired, READ_AGAIN]
    put(pki / "other.pem", tmp_path / "clients.pem")
    assert reload(daemon) == [expired, *in_use(pki / "expired.pem")], "another client CA is used all the same"
    put(pki / "ca.pem", tmp_path / "clients.pem")
    renew(pki, tmp_path)
    assert reload(daemon) == in_use(pki / "daemon.pem")
    assert shown(daemon.tls, context(pki, "client")) == "daemon"


def test_other_files_of_tls_need_a_restart(make_daemon, pki, tmp_path):
    """Those in use stay, also if they are gone. So does TLS that is switched off, or a client CA that is new."""
    renew(pki, tmp_path)
    config = tmp_path / "conf"
    text = "tls_certificate = {0}/{1}.pem\ntls_key = {0}/{1}.key\n"
    config.write_text(text.format(tmp_path, "daemon"))
    daemon = make_daemon(fake_bench_env(), args=["--anonymous=read", f"--config={config}", "--listen=127.0.0.1:0,https://127.0.0.1:0"])
    daemon.tls = int(re.search(r"https://127\.0\.0\.1:(\d+)", "\n".join(daemon.log))[1])
    for settings, names in ((text.format(pki, "client"), ("tls_certificate", "tls_key")),
                            ("", ("tls_certificate", "tls_key")),
                            (text.format(tmp_path, "daemon") + f"tls_client_ca = {pki}/ca.pem\n", ("tls_client_ca",))):
        config.write_text(settings)
        if "tls_certificate" in names:
            (tmp_path / "daemon.pem").unlink()
        *pending, last = reload(daemon)
        gone = [line for line in pending if line.startswith("tls.certificate")]
        assert ("tls_certificate" in names) == bool(gone), "what is wrong with those in use is said"
        assert all(re.match(r'tls.certificate problem="tls_certificate: .*No such file.*" text="not renewed"$', line) for line in gone), gone
        pending = [line for line in pending if line not in gone]
        said = tuple(re.match(r'reload setting=(\S+) .* text="needs a restart"$', line)[1] for line in pending)
        assert last == READ_AGAIN and said == names, pending
        assert shown(daemon.tls, context(pki)) == "daemon" and ask(daemon, context(pki))[0] == 200
        renew(pki, tmp_path)
