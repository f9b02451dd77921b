# SPDX-License-Identifier: Apache-2.0
"""Requests that are wrong in every way get the right problem document and harm nobody."""
import json
import socket

import pytest

from conftest import PATIENCE, read_answer

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"


def post(headers, body=b"{}"):
    return b"POST /v1/runs HTTP/1.1\r\n" + HOST + headers + b"\r\n" + body


MALFORMED = {
    "odd method": (b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "lower-case method": (b"get /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "strange host": (b"GET /healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421),
    "host with rubbish": (b"GET /healthz HTTP/1.1\r\nHost: localhost:80@x\r\n\r\n", 400),
    "NUL in the path": (b"GET /healthz%00x HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "slash in disguise": (b"GET /v1%2Fruns HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "dots in disguise": (b"GET /v1/%2e%2e/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "absolute target": (b"GET http://localhost/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no such path": (b"GET /v2 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "no such method here": (b"DELETE /v1/runs HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "id zero": (b"GET /v1/runs/0 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "id with letters": (b"GET /v1/runs/1x HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "no such run": (b"GET /v1/runs/999999 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "unknown parameter": (b"GET /v1/runs?colour=red HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "parameter twice": (b"GET /v1/runs?limit=1&limit=2 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "bad percent code": (b"GET /v1/runs?state=%zz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "limit out of range": (b"GET /v1/runs?limit=0 HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "empty label": (b"GET /v1/runs?label= HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "empty node": (b"GET /v1/runs?node= HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "no such state": (b"GET /v1/runs?state=asleep HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "no time between": (b"GET /v1/runs?since=2026-01-02&until=2026-01-01 HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "not a time": (b"GET /v1/runs?since=yesterday HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "not a cursor": (b"GET /v1/runs?cursor=7 HTTP/1.1\r\n" + HOST + b"\r\n", 422),
    "two lengths": (post(JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n"), 400),
    "length and chunks": (
        post(JSON + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), 400),
    "unknown coding": (post(JSON + b"Transfer-Encoding: gzip, chunked\r\n"), 400),
    "not a length": (post(JSON + b"Content-Length: two\r\n"), 400),
    "blank before colon": (post(JSON + b"Content-Length : 2\r\n"), 400),
    "too large by its length": (post(JSON + b"Content-Length: 65537\r\n", b""), 413),
    "form": (post(b"Content-Type: text/plain\r\nContent-Length: 2\r\n"), 415),
    "no type": (post(b"Content-Length: 2\r\n"), 415),
    "other origin": (post(JSON + b"Origin: http://evil.test\r\nContent-Length: 2\r\n"), 403),
    "cross site": (post(JSON + b"Sec-Fetch-Site: cross-site\r\nContent-Length: 2\r\n"), 403),
    "not JSON": (post(JSON + b"Content-Length: 2\r\n", b"{["), 400),
    "empty body": (post(JSON + b"Content-Length: 0\r\n", b""), 400),
    "no benchmark": (post(JSON + b"Content-Length: 2\r\n"), 422),
}


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/imports"])
def test_an_empty_body_is_called_so(daemon, path):
    answer = daemon.request("POST", path, "", {"Content-Type": "application/json"})
    assert answer.status == 400 and answer.json["detail"] == "the body is empty; it must be a JSON object"


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(daemon, name):
    data, want = MALFORMED[name]
    status, head, body = daemon.raw(data)
    assert status == want, (head, body)
    if b"application/problem+json" not in head:
        assert name in LIBRARY_ANSWERS, head  # refused before we are asked
        return
    problem = json.loads(body)
    assert problem["status"] == want
    assert problem["type"].startswith("/problems/")
    assert problem["detail"] and problem["title"]
    assert problem["request_id"].encode() in head


# What the HTTP library refuses by itself, in its own words: the last three from 1.0 on.
LIBRARY_ANSWERS = {"no host", "not a length", "length and chunks", "unknown coding", "blank before colon"}

INVALID = [
    ({"benchmark": "speed"}, "benchmark"),
    ({"benchmark": "latency", "mode": "sideways"}, "mode"),
    ({"benchmark": "latency", "size": "lots"}, "size"),
    ({"benchmark": "latency", "stride": 7}, "stride"),
    ({"benchmark": "latency", "min_samples": 1.5}, "min_samples"),
    ({"benchmark": "latency", "hyperthreads": 1}, "hyperthreads"),
    ({"benchmark": "latency", "colour": "red"}, "colour"),
    ({"benchmark": "latency", "dry_run": "yes"}, "dry_run"),
    ({"benchmark": "latency", "note": "a\u0007b"}, "note"),
    ({"benchmark": "latency", "note": "a\nb", "dry_run": True}, "note"),
    ([], None),
]


@pytest.mark.parametrize("body,member", INVALID, ids=lambda v: json.dumps(v))
def test_invalid_member_is_named(daemon, body, member):
    answer = daemon.post("/v1/runs", body)
    assert answer.status == 422
    assert answer.json.get("member") == member


@pytest.mark.parametrize("query, member", [("true", False), ("false", True)])
def test_a_dry_run_is_asked_for_in_one_way(daemon, query, member):
    """One of two places that differ won: a request for a dry run started a run, or stored one."""
    before = daemon.get("/v1/runs").json["runs"]
    for path, body in (("/v1/runs", {"benchmark": "latency"}), ("/v1/imports", {"text": "size (MB),0\n1,5.5\n"})):
        answer = daemon.post(f"{path}?dry_run={query}", {**body, "dry_run": member})
        assert answer.status == 422 and answer.json["member"] == "dry_run", answer.body
        assert daemon.post(f"{path}?dry_run=true", {**body, "dry_run": True}).status == 200
    assert daemon.get("/v1/runs").json["runs"] == before


@pytest.mark.parametrize("body", [b'{"benchmark":"latency","benchmark":"latency"}', b"[" * 50 + b"]" * 50,
                                  b'{"benchmark":"latency"} x', b'{"note":"\xff"}', b"\x00"])
def test_strict_json(daemon, body):
    answer = daemon.request("POST", "/v1/runs", body)
    assert answer.status == 400 and answer.json["type"] == "/problems/bad-request"


def test_allow_header(daemon):
    answer = daemon.request("DELETE", "/v1/runs")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method, path", [("POST", "/v1/runs/{id}/cancel"), ("DELETE", "/v1/runs/{id}"), ("DELETE", "/v1/baselines/none"),
                                          ("DELETE", "/v1/tokens/none")])
def test_what_takes_no_body_is_refused_with_one(daemon, method, path):
    run = daemon.run(size="256K", ranks="1")["id"]
    path = path.format(id=run)
    for body, status, said in (({"force": True}, 422, "is unknown; this request takes no members"), (b"[]", 400, "takes no body"),
                               (b"x", 400, "takes no body")):
        answer = daemon.request(method, path, body, {"Content-Type": "application/json"}, unix=True)
        assert answer.status == status and said in answer.json["detail"] and answer.json.get("member") == ("force" if status == 422 else None), answer
    assert daemon.get(f"/v1/runs/{run}").status == 200, "it was not deleted"
    answer = daemon.request(method, path, b"{}", {"Content-Type": "application/json"}, unix=True)
    assert answer.status in (204, 404, 409), answer


def test_chunked_body_is_counted(daemon):
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    head = post(JSON + b"Transfer-Encoding: chunked\r\n", b"")
    assert daemon.raw(head + chunk * 15 + b"0\r\n\r\n")[0] == 400
    assert daemon.raw(head + chunk * 17 + b"0\r\n\r\n")[0] == 413


def test_slow_body_holds_up_nobody(daemon):
    body = b'{"benchmark":"speed"}'
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as s:
        s.sendall(post(JSON + b"Content-Length: %d\r\n" % len(body), b""))
        for i in range(len(body)):
            assert daemon.get("/healthz").status == 200
            s.sendall(body[i:i + 1])
        assert read_answer(s)[0] == 422


def test_many_headers(daemon):
    head = b"".join(b"X-%d: y\r\n" % i for i in range(100))
    status, _, body = daemon.raw(b"GET /healthz HTTP/1.1\r\n" + HOST + head + b"\r\n")
    assert status == 400 and json.loads(body)["type"] == "/problems/bad-request"


def test_head_has_no_body(daemon):
    answer = daemon.request("HEAD", "/healthz")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 0


def test_still_well(daemon):
    assert daemon.get("/healthz").json["status"] == "ok"
