"""Tests of retries and of the shape of requests, with scripted servers. These use the
certificate of the cluster's first node."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import facet_client
from facet_client import Client, _answers

Answer = tuple[int, str, dict[str, str]] | None  # None hangs up
FAILED = '{"message":"No leader.","errorCode":5000,"errorType":"ServerError"}'
ATTRIBUTES = {
    **{area: {"left": "1", "top": "2", "right": "3", "bottom": "4"} for area in ("faceArea", "headArea")},
    **{eye: {"x": "1", "y": "2"} for eye in ("rightEyeCenter", "leftEyeCenter")},
    **{n: "0.5" for n in ("faceScore", "frontalFaceScore", "faceQualityScore", "faceRoll", "facePan", "faceTilt")},
}
MADE = json.dumps({"id": "s", "eventId": "e", "attributes": ATTRIBUTES})


def say(status: int, body: str = "", **headers: str) -> Answer:
    return status, body, {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Seen:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)


@dataclass
class Script:
    """A server and the requests that it got."""

    url: str
    seen: list[Seen]
    ca: str

    def client(self, *urls: str, **settings: Any) -> Client:
        return Client([*urls, self.url], "AK", "SK", ca_file=self.ca, api_key="key", **settings)


@contextmanager
def server(certificates: Path, answer: Callable[[Seen, int], Answer]) -> Iterator[Script]:
    """Serves answer(request, its number) until the block ends."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {k.lower(): v for k, v in self.headers.items()}
            seen.append(Seen(self.command, self.path, headers, body))
            said = answer(seen[-1], len(seen) - 1)
            self.close_connection = True
            if said is None:
                return
            self.send_response(said[0])
            for name, value in {**said[2], "content-length": str(len(said[1].encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said[1].encode())

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Script(f"https://127.0.0.1:{http.server_port}", seen, str(certificates / "ca.pem"))
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture
def play(workplace: Path) -> Iterator[Callable[..., Script]]:
    """Starts servers that give the answers in order and repeat the last one."""
    open_servers = []

    def start(*answers: Answer) -> Script:
        s = server(workplace / "dev" / "certificates" / "n1", lambda _, n: answers[min(n, len(answers) - 1)])
        open_servers.append(s)
        return s.__enter__()

    yield start
    for s in open_servers:
        s.__exit__(None, None, None)


def test_retried_write_keeps_key_and_body(play: Callable[..., Script]) -> None:
    s = play(None, say(500, FAILED), say(429, '{"message":"Too many requests."}'), say(201, MADE))
    with s.client() as client:
        assert client.register(b"x").id == "s"
        client.register(b"x")
        client.register(b"x", idempotency_key="import 7, line 12")
    keys = [r.headers["idempotency-key"] for r in s.seen]
    assert len(keys) == 6 and len(set(keys[:4])) == 1 and keys[4] != keys[0] and keys[5] == "import 7, line 12"
    assert len({r.body for r in s.seen}) == 1


def test_refusal_is_not_retried(play: Callable[..., Script]) -> None:
    def refused(status: int, body: str, kind: type[facet_client.Refusal]) -> None:
        s = play(say(status, body, x_request_id="r1"))
        with s.client() as client, pytest.raises(facet_client.Refusal) as e:
            client.register(b"x")
        assert type(e.value) is kind and e.value.status == status and e.value.request_id == "r1" and len(s.seen) == 1

    refused(400, '{"message":"m","errorCode":1001,"errorType":"InvalidRequest"}', facet_client.InvalidRequest)
    refused(400, '{"message":"m","errorCode":1002,"errorType":"Duplicate"}', facet_client.Duplicate)
    refused(400, '{"message":"m","errorCode":2002,"errorType":"PoorQuality"}', facet_client.PoorQuality)
    refused(403, '{"message":"Forbidden"}', facet_client.Forbidden)
    refused(404, '{"message":"m","reason":"NotVerified","score":12}', facet_client.NotVerified)
    refused(404, '{"message":"m","reason":"UnknownTag"}', facet_client.NotFound)
    refused(413, "<html>a proxy's</html>", facet_client.Refusal)
    refused(302, "", facet_client.Refusal)


def test_retry_after_is_obeyed(play: Callable[..., Script]) -> None:
    s = play(say(429, "{}", Retry_After="1"), say(200, '{"status":"OK"}'))
    with s.client() as client:
        client.health()
    first, second = s.seen
    assert second.at - first.at >= 1 and first.headers["authorization"] != second.headers["authorization"]


def test_long_wait_is_final(play: Callable[..., Script]) -> None:
    quota = '{"message":"m","reason":"Quota","quota":"writes"}'
    for step, want in [(say(429, quota), 0.0), (say(429, quota, Retry_After="86400"), 86400.0)]:
        s = play(step)
        with s.client() as client, pytest.raises(facet_client.Busy) as e:
            client.health()
        assert e.value.retry_after == want and len(s.seen) == 1


def test_tries_end(play: Callable[..., Script]) -> None:
    s = play(say(500, FAILED))
    with s.client(tries=3) as client, pytest.raises(facet_client.ServerFault) as e:
        client.health()
    assert e.value.error_code == 5000 and len(s.seen) == 3
    s = play(None)
    with s.client(tries=3) as client, pytest.raises(facet_client.NoAnswer):
        client.health()
    assert len(s.seen) == 3


def test_repeated_deletion_succeeds(play: Callable[..., Script]) -> None:
    gone = say(404, '{"message":"Subject not found.","reason":"SubjectNotFound"}')
    with play(None, gone).client() as client:
        client.unregister("s")
    with play(gone).client() as client, pytest.raises(facet_client.NotFound):
        client.unregister("s")
    merged = say(404, '{"message":"It was merged: 5","reason":"SubjectMerged"}')
    with play(None, merged).client() as client, pytest.raises(facet_client.SubjectMerged):
        client.unregister("s")
    with play(None, say(400, '{"message":"m","errorCode":1002,"errorType":"Duplicate"}')).client() as client:
        client.create_tag("t")


def test_silent_node_is_passed_over(play: Callable[..., Script]) -> None:
    s = play(say(200, '{"status":"OK"}'))
    with socket.create_server(("127.0.0.1", 0)) as dead, socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = [f"https://127.0.0.1:{x.getsockname()[1]}" for x in (dead, silent)]
        dead.close()
        with s.client(*addresses, timeout=0.3) as client:
            for _ in range(10):
                client.health()
        silent.setblocking(False)
        asked = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                asked += 1
        assert 1 <= asked <= 2


def test_foreign_certificate_is_not_retried(play: Callable[..., Script], monkeypatch: pytest.MonkeyPatch) -> None:
    s = play(say(200, '{"status":"OK"}'))
    pauses: list[float] = []
    monkeypatch.setattr("facet_client._transport.time.sleep", pauses.append)
    with Client([s.url], "AK", "SK") as client, pytest.raises(facet_client.NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
        client.health()
    assert pauses == [] and s.seen == []


def test_id_of_another_path_is_not_sent(play: Callable[..., Script]) -> None:
    s = play(say(200))
    with s.client() as client:
        for name in ("", ".", ".."):
            for call in (client.unregister, client.delete_tag, client.bulk_progress):
                with pytest.raises(ValueError, match="is empty"):
                    call(name)
    assert s.seen == []


def test_unreadable_answer_is_an_error(play: Callable[..., Script]) -> None:
    for body in ("<html>", "[]", '{"id":"s"}', '{"id":1,"attributes":{}}'):
        with play(say(201, body)).client() as client, pytest.raises(facet_client.FacetError):
            client.register(b"x")


def test_bad_configuration_is_refused() -> None:
    for urls in ([], ["http://n1"], ["https://n1/path"], ["n1:7420"], ["https://u:p@n1"]):
        with pytest.raises(ValueError):
            Client(urls, "AK", "SK")
    with pytest.raises(ValueError):
        Client(["https://n1"], "", "SK")


# The contract: each operation is sent as openapi.json describes it.

DOCUMENT: dict[str, Any] = json.loads((ROOT / "node" / "httpapi" / "openapi" / "openapi.json").read_text())


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in value:
        return value
    found: Any = DOCUMENT
    for part in value["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return resolved(found)


def find(method: str, path: str) -> dict[str, Any]:
    """Returns the described operation of a request."""
    for pattern, item in DOCUMENT["paths"].items():
        parts, got = pattern.split("/"), path.split("/")
        if len(parts) == len(got) and all(p == g or p.startswith("{") for p, g in zip(parts, got, strict=True)):
            if method.lower() in item:
                op: dict[str, Any] = item[method.lower()]
                return op
    raise AssertionError(f"{method} {path} is not described")


def check(op: dict[str, Any], r: Seen) -> None:
    """Compares a request with its description."""
    keyed = any(resolved(p)["name"] == "Idempotency-Key" for p in op.get("parameters", []))
    assert ("idempotency-key" in r.headers) == keyed, op["operationId"]
    assert "x-cloud-date" in r.headers and ("x-api-key" in r.headers or "apiKey" not in op["security"][0])
    assert bool(r.body) == ("requestBody" in op), op["operationId"]
    if r.body:
        members = json.loads(r.body)
        schema = resolved(op["requestBody"]["content"]["application/json"]["schema"])
        fit = [
            s
            for s in map(resolved, schema.get("oneOf", [schema]))
            if set(s["required"] if "required" in s else []) <= set(members)
        ]
        assert fit and set(members) <= set(fit[0]["properties"]), (op["operationId"], members)


def test_all_subjects_follows_cursors(play: Callable[..., Script]) -> None:
    def page(subject: str, **rest: str) -> Answer:
        entry = {"id": subject, "eventId": "e", "status": "A", "lastUpdated": "2026-01-02T03:04:06.678+00:00"}
        return say(200, json.dumps({"subjects": [entry], "total": 3, **rest}))

    s = play(page("a", next="n1"), page("b", next="n_-2"), page("c"))
    with s.client() as client:
        assert [e.id for e in client.all_subjects("desc")] == ["a", "b", "c"]
    assert [r.target.partition("?")[2] for r in s.seen] == [
        "dir=desc&length=1000&start=0",
        "after=n1&length=1000",
        "after=n_-2&length=1000",
    ]
    with play(page("a")).client() as client, pytest.raises(facet_client.FacetError, match="cursors"):
        list(client.all_subjects())


TAGS = ["night"]


def test_failing_receipt_is_refused(play: Callable[..., Script]) -> None:
    def shard(n: int, index: int, active: int, searched: int, tags: int) -> dict[str, Any]:
        return {"shard": n, "index": index, "active": active, "searched": searched, "leftOut": {"tags": tags}}

    def said(epoch: int = 2, shards: list[int] | None = None, *parts: dict[str, Any]) -> Answer:
        found: dict[str, Any] = {"message": "none", "candidates": [], "attributes": ATTRIBUTES}
        if shards is not None:
            found["receipt"] = {"epoch": epoch, "list": shards, "shards": parts}
        return say(404, json.dumps(found))

    good = said(2, [1, 4], shard(1, 10, 5, 5, 0), shard(4, 20, 7, 3, 4))
    with play(good, said(3, [1], shard(1, 11, 6, 6, 0)), good).client() as client:
        first = client.search(b"x", tags=TAGS, receipt=True).receipt
        assert first is not None and first.shards[1].left_out == {"tags": 4}
        client.search(b"x", tags=TAGS, receipt=True)
        with pytest.raises(facet_client.ReceiptError, match="earlier"):
            client.search(b"x", tags=TAGS, receipt=True)
        assert client.with_api_key("other").search(b"x", tags=TAGS, receipt=True).receipt == first
    for wrong in (
        said(2, [1, 4], shard(1, 10, 5, 4, 0), shard(4, 20, 7, 3, 4)),  # an event was skipped
        said(2, [1, 4], shard(1, 10, 5, 5, 0)),  # a shard was skipped
        said(2, [1, 4], shard(1, 10, 5, 5, 0), shard(1, 10, 5, 5, 0)),
        said(2, []),
        said(),
        said(2, [1, 4], shard(1, 9, 5, 5, 0), shard(4, 20, 7, 3, 4)),  # a stale replica
        said(1, [1], shard(1, 10, 5, 5, 0)),  # an old list
        said(2, [1], shard(1, 10, 5, 5, 0)),  # another list of the epoch
        said(3, [1], shard(1, 11, -5, -5, 0)),
        said(3, [1], shard(1, 11, 3, -2, 5)),
        said(3, [1], shard(1, 11, 3, 5, -2)),
        said(3, [9], shard(9, -1, 0, 0, 0)),
        said(3, [1], {**shard(1, 11, 5, 3, 1), "leftOut": {"tags": 1, "age": 1}}),  # an unknown reason
        said(3, [1, 1], shard(1, 11, 5, 5, 0), shard(1, 11, 5, 5, 0)),
    ):
        with play(good, wrong).client() as client:
            client.search(b"x", tags=TAGS, receipt=True)
            with pytest.raises(facet_client.ReceiptError):
                client.search(b"x", tags=TAGS, receipt=True)
    with play(good).client() as client, pytest.raises(facet_client.ReceiptError, match="without tags"):
        client.search(b"x", receipt=True)


def example(op: dict[str, Any]) -> Answer:
    """Returns the described answer of success."""
    status = next(s for s in op["responses"] if s.startswith("2"))
    media = op["responses"][status].get("content", {}).get("application/json")
    if media is None:
        return say(int(status))
    value = media.get("example") or next(resolved(e)["value"] for e in media["examples"].values())
    return say(int(status), json.dumps(value))


def test_answers_are_exported() -> None:
    answers = {name for name, kind in vars(_answers).items() if is_dataclass(kind)}
    assert answers - {"DifferentPairs", "Merged"} <= set(facet_client.__all__)  # which no method returns


def test_operations_match_the_document(workplace: Path) -> None:
    called: set[str] = set()

    def answer(r: Seen, _: int) -> Answer:
        try:
            op = find(r.method, r.target.partition("?")[0])
            check(op, r)
        except AssertionError as e:
            return say(400, json.dumps({"message": str(e)}))
        called.add(op["operationId"])
        return example(op)

    with server(workplace / "dev" / "certificates" / "n1", answer) as s, s.client() as c:
        c.health()
        key = c.whoami()
        room = facet_client.GalleryRoom(id=key.galleries[0], name="staff", size=1000, count=412)
        assert key.role == "search-only" and key.ends and key.gallery == room
        assert [e.status for e in c.subjects(1, 2, "desc").subjects] == ["A"]
        made = c.register(b"x", ["t"])
        assert made.event_id and made.attributes.face_area.right == 618 and made.attributes.face_roll == -0.818455
        assert made == c.update("s", b"x") == c.register_event("s", b"x", []) == c.update_event("s", "e", b"x")
        assert c.events("s") == [made.event_id]
        c.unregister("s")
        c.unregister_event("s", "e")
        c.merge("s", "e")
        assert c.extract(b"x", 5) == [made.attributes] == c.v1.extract(b"x")
        assert c.verify_subject("s", b"x") == c.verify_faces(b"x", b"x") == c.v1.verify("s", b"x") == 8731
        found = c.search(b"x", threshold=0, limit=3, tags=["t"])
        assert found.candidates[0].events[0].id == made.event_id and found.attributes == made.attributes
        assert c.search([b"x", b"y"]).candidates == found.candidates
        assert c.verify_subject("s", [b"x", b"y"]) == c.verify_faces(b"x", [b"x", b"y"]) == 8731
        (match,) = c.matches(b"x", threshold=0)
        assert match == c.match_page(b"x", length=3, after="AQ").candidates[0] and match.event_count == 1
        compared = c.compare([b"x", b"y", "AQ"])
        assert [f.token is not None for f in compared.faces] == [True, False, False]
        assert compared.faces[0].attributes == made.attributes and compared.faces[1].error is not None
        pairs = [(2, 0), (0, 2), (0, 1), (1, 1)]
        assert [compared.score(i, j) for i, j in pairs] == [8731, 8731, None, None]
        begun = c.begin_check()
        checked = c.check_row(begun.id, 17, b"x", ["t"], external_id="a", user_data={"b": 1})
        assert begun.rows_max == 100_000 and checked.rows == [facet_client.ScoredRow(row=3, score=9037)]
        assert checked.known and checked.candidates[0].external_id == "staff/4711"
        c.end_check(begun.id)
        assert c.v1.search(b"x", threshold=1, limit=2).candidates[0].events == []
        assert c.v1.register(b"x").event_id == "" and c.v1.update("s", b"x").id == made.id
        c.v1.unregister("s")
        assert c.tags() == ["night shift", "visitors"]
        c.create_tag("a/b ü%")
        c.rename_tag("a/b ü%", "c")
        c.delete_tag("c")
        assert len(c.jobs()) == 1
        begun = c.begin_duplicates(9000)
        (pair,) = c.pairs()
        assert c.duplicates("AQ", 7).batch_id == begun and pair.group == 1 and pair.score == 9731
        assert [s.external_id for s in pair.subjects] == ["staff/4711", ""]
        c.end_duplicates()
        c.set_different("s", "externalId:staff/4711")
        assert [p.subjects[0].external_id for p in c.different()] == ["staff/4711"]
        c.unset_different("s", "b")
        assert c.verify("s", b"x", reference="visits/12").score == 8731
        (case,) = c.cases("open")
        assert (case.reference, case.verdicts_needed, case.verdicts) == ("visits/12", 2, [])
        assert c.case_page("open", length=7, after="AQ").cases == [case]
        assert c.case("k").photo_link and c.decide("k", "same").verdicts[0].holder == "anna"
        batch = c.bulk_register([facet_client.BulkItem("f", ["t"]), facet_client.BulkItem("g")])
        (record,) = c.bulk_records(batch)
        assert record.attributes == made.attributes and record.attempts == 1
        assert c.bulk_progress(batch, "AAAD6A").processed == [record]
        (gallery,) = c.galleries()
        assert gallery.count == 12 and c.gallery("g").applications == c.applications()
        assert c.create_gallery("n", 1, description="d").api_key
        assert c.update_gallery("g", name="n", description="d", size=2).size == 2000
        c.delete_gallery("g")
        assert c.application("a") == c.create_application("g", "n", verify_threshold=1, enrolment_guard=True)
        assert c.update_application("a", name="n", face_minimum_quality_score=0.5).verify_threshold == 7500
        c.delete_application("a")
        page = c.audit_records(operation="search", since=datetime(2026, 11, 1, tzinfo=timezone.utc), reads=False, content=True, before=4711)
        assert (page.size, page.recording, page.next) == (4711, True, 4710)
        assert page.records[0].request_id and page.records[0].candidates[0].score == 9731
        assert [c.audit_file(name) for name in ("key", "checkpoint", "tile/0")] == [b""] * 3
    assert called == {op["operationId"] for item in DOCUMENT["paths"].values() for op in item.values()}
