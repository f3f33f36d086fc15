"""Sends signed requests to one node after the other until an answer is final."""

from __future__ import annotations

import json
import os
import random
import threading
import time
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from tempfile import mkstemp
from typing import Any
from urllib.parse import urlsplit

import requests

from ._errors import Duplicate, FacetError, NoAnswer, NotFound, Refusal, refusal
from ._sign import Signer, escape

TRIES = 8
TIMEOUT = 45.0  # seconds for one try; the service's own limit is 30
_CONNECT_TIMEOUT = 5.0
_BACKOFF_MIN, _BACKOFF_MAX = 0.1, 3.0
_REST = 5.0  # seconds that a node without an answer is left alone
_NODES_MAX = 64
_PURPOSE_BYTES_MAX = 256  # as many as a record of the audit log has
_ANSWER_BYTES_MAX = 64 << 20

# What a repetition of a request means when the outcome of an earlier try is unknown.
FREELY = "freely"  # a read
KEYED = "keyed"  # the Idempotency-Key makes it one write
GONE = "gone"  # a deletion: now "not found" is success
THERE = "there"  # a creation: now "duplicate" is success


@dataclass(frozen=True)
class Operation:
    """One call of an operation. path and query are percent-encoded, the query is sorted
    by name."""

    method: str
    path: str
    query: str = ""
    body: Mapping[str, Any] | None = None
    portal: bool = False
    repeat: str = FREELY
    key: str | None = None
    """The Idempotency-Key of a write. None means a random one."""
    if_match: str | None = None
    """The ETag that the settings must have."""
    empty: str = ""
    """The member that a 404 contains when the answer is an empty list."""
    raw: bool = False
    """The answer is bytes."""


@dataclass(frozen=True)
class Answer:
    """The answer of a node."""

    status: int
    headers: Mapping[str, str]
    text: bytes


def path(*segments: str) -> str:
    """Returns the path of plain segments, percent-encoded."""
    for s in segments:
        if s in ("", ".", ".."):  # the path would be another one
            raise ValueError("an id or a name is empty or a dot segment")
    return "".join("/" + escape(s) for s in segments)


def checked(purpose: str | None) -> str | None:
    """Returns a purpose. Raises ValueError unless a header may have it."""
    if purpose is None:
        return None
    for c in purpose:
        if not " " <= c <= "~":
            raise ValueError(f"the purpose has the character {c!r}: a header may have printable ASCII characters only")
    if len(purpose) > _PURPOSE_BYTES_MAX:
        raise ValueError(f"the purpose has {len(purpose)} bytes: shorten it to {_PURPOSE_BYTES_MAX}")
    return purpose.strip(" ")  # requests sends no blanks around a header


class Nodes:
    """Chooses the node for each try: one after the other, except nodes that gave no
    answer lately. The first one is random, so that many clients do not all start at
    the same node."""

    def __init__(self, urls: list[str]) -> None:
        if not 1 <= len(urls) <= _NODES_MAX:
            raise ValueError(f"{len(urls)} addresses, want 1 to {_NODES_MAX}")
        self.hosts: list[str] = []
        for url in urls:
            u = urlsplit(url)
            if u.scheme != "https" or not u.hostname or u.path.strip("/") or u.query or "@" in u.netloc:
                raise ValueError(f"{url!r} is not of the form https://host:port")
            self.hosts.append(u.netloc)
        self._next = random.randrange(len(urls))
        self._rests = [0.0] * len(urls)
        self._lock = threading.Lock()

    def pick(self) -> int:
        """Returns the index of the next node. When all are left alone, it is the next one anyway."""
        with self._lock:
            self._next = (self._next + 1) % len(self.hosts)
            order = [(self._next + i) % len(self.hosts) for i in range(len(self.hosts))]
            return next((i for i in order if self._rests[i] <= time.monotonic()), self._next)

    def rest(self, i: int) -> None:
        """Leaves a node alone for _REST seconds."""
        self._rests[i] = time.monotonic() + _REST

    def wake(self, i: int) -> None:
        """Uses a node again that has answered."""
        self._rests[i] = 0.0


class Transport:
    """The connections and keys that a client shares with those of its with_api_key."""

    def __init__(
        self, base: Nodes, portal: Nodes, signer: Signer, ca_file: str | None, tries: int, timeout: float
    ) -> None:
        self._base, self._portal, self._signer = base, portal, signer
        self._tries, self._timeout = tries, timeout
        self.session = requests.Session()
        # A .netrc would replace the signature.
        self.session.trust_env = False
        if ca_file is not None:
            self.session.verify = ca_file

    def trust(self, ca: str) -> None:
        """Takes the certificates of the nodes' authority, in PEM, instead of a file of them."""
        # requests reads a file at each connection. This one goes with the transport.
        handle, name = mkstemp(suffix=".pem")
        with open(handle, "w") as out:
            out.write(ca)
        weakref.finalize(self, os.unlink, name)
        self.session.verify = name

    def call(self, op: Operation, api_key: str | None, purpose: str | None) -> Any:
        """Returns the answer's JSON, or None without a body."""
        name = f"{op.method} {op.path}"
        headers, body = self._prepare(op, api_key, purpose)
        nodes = self._portal if op.portal else self._base
        doubt = False  # an earlier try may have had its effect
        for attempt in range(1, self._tries + 1):
            node = nodes.pick()
            try:
                answer = self._try(op, nodes.hosts[node], headers, body)
            except requests.RequestException as e:
                nodes.rest(node)
                doubt = True
                error: FacetError = NoAnswer(f"{name}: {e}")
                error.__cause__ = e
                if isinstance(e, requests.exceptions.SSLError) and attempt >= len(nodes.hosts):
                    raise error from e  # calling a foreign node again is useless
                wait = 0.0 if attempt < len(nodes.hosts) else _backoff(attempt)
            else:
                nodes.wake(node)
                if _stands(answer, op):
                    return answer.text if op.raw else _value(name, answer)
                refused = refusal(name, answer.status, answer.text, answer.headers)
                if doubt and _done_before(op, refused):
                    return None
                if not refused.again:
                    raise refused
                doubt = doubt or refused.status >= 500
                error, wait = refused, refused.retry_after or _backoff(attempt)
            if attempt < self._tries:
                time.sleep(wait)
        raise error

    def _prepare(self, op: Operation, api_key: str | None, purpose: str | None) -> tuple[dict[str, str], bytes]:
        headers = {"accept": "*/*" if op.raw else "application/json"}
        if api_key and not op.portal:
            headers["x-api-key"] = api_key
        if purpose:
            headers["x-purpose"] = purpose
        if op.repeat == KEYED:
            headers["idempotency-key"] = op.key or str(uuid.uuid4())
        if op.if_match:
            headers["if-match"] = op.if_match
        if op.body is None:
            return headers, b""
        headers["content-type"] = "application/json"
        return headers, json.dumps(op.body).encode()

    def _try(self, op: Operation, host: str, headers: dict[str, str], body: bytes) -> Answer:
        """Sends a request once. Signs each try, because host and date differ."""
        url = f"https://{host}{op.path}" + (f"?{op.query}" if op.query else "")
        signed = self._signer.sign(op.method, host, op.path, op.query, headers, body)
        prepared = self.session.prepare_request(requests.Request(op.method, url, headers=signed, data=body or None))
        if prepared.url != url:
            raise FacetError(f"{url} would be sent as {prepared.url}, which is not what is signed")
        settings = self.session.merge_environment_settings(url, {}, True, None, None)
        with self.session.send(
            prepared, timeout=(min(_CONNECT_TIMEOUT, self._timeout), self._timeout), allow_redirects=False, **settings
        ) as got:
            text = bytearray()
            for part in got.iter_content(1 << 16):
                text += part
                if len(text) > _ANSWER_BYTES_MAX:
                    raise requests.exceptions.ContentDecodingError("the answer is too long")
            return Answer(got.status_code, got.headers, bytes(text))


def _value(name: str, answer: Answer) -> Any:
    if not answer.text:
        return None
    try:
        value = json.loads(answer.text)
    except ValueError as e:
        raise FacetError(f"{name}: the answer is not JSON") from e
    if isinstance(value, dict) and "ETag" in answer.headers:
        value["etag"] = answer.headers["ETag"]
    return value


def _stands(answer: Answer, op: Operation) -> bool:
    if answer.status // 100 == 2:
        return True
    if answer.status != 404 or not op.empty:
        return False
    try:
        value = json.loads(answer.text)
    except ValueError:
        return False
    return isinstance(value, dict) and op.empty in value


def _done_before(op: Operation, refused: Refusal) -> bool:
    return (op.repeat == GONE and isinstance(refused, NotFound)) or (
        op.repeat == THERE and isinstance(refused, Duplicate)
    )


def _backoff(attempt: int) -> float:
    """Returns a pause that doubles with each try, random so that clients do not all return at once."""
    most = min(_BACKOFF_MIN * 2.0**attempt, _BACKOFF_MAX)
    return random.uniform(most / 2, most)
