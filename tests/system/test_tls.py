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

from conftest import PATIENCE, fake_bench_env
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


def test_a_reload_names_files_that_have_changed(make_daemon, pki, tmp_path):
    """They are used from the next start on. What that would refuse is named as well, and the daemon serves as before."""
    for end in ("pem", "key"):
        shutil.copy(pki / f"daemon.{end}", tmp_path / f"daemon.{end}")
    daemon = secure(make_daemon, tmp_path)

    def reload():
        daemon.log.clear()
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line('event=reload text="the configuration was read again"')
        return [line.partition("event=reload ")[2] for line in daemon.log if "needs a restart" in line]
    assert reload() == []
    for end in ("pem", "key"):
        shutil.copy(pki / f"client.{end}", tmp_path / f"daemon.{end}")
    assert reload() == ['setting=tls_certificate problem="the file has changed" text="needs a restart"']
    (tmp_path / "daemon.key").chmod(0o644)
    [said] = reload()
    assert said.startswith("setting=tls_key ") and "that others cannot use" in said, said
    (tmp_path / "daemon.pem").unlink()
    [said] = reload()
    assert said.startswith("setting=tls_certificate ") and "No such file" in said, said
    assert ask(daemon, context(pki), path="/healthz")[0] == 200
