"""Signature Version 4 (AWS, "Create a signed AWS API request"). This client writes
one form of it. The service reads others too."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"
_TERMINATOR = "aws4_request"


def escape(text: str) -> str:
    """Percent-encodes every byte except letters, digits and -._~ ."""
    return quote(text, safe="-._~")


@dataclass(frozen=True)
class Signer:
    """Signs requests with the keys of a tenant."""

    access_key: str
    secret_key: str
    region: str
    service: str

    def sign(
        self,
        method: str,
        host: str,
        path: str,
        query: str,
        headers: dict[str, str],
        body: bytes,
        now: datetime | None = None,
    ) -> dict[str, str]:
        """Returns headers with the date header and Authorization added.

        The signature covers all headers, with blanks folded. path and query are percent-encoded, and the
        query is sorted by name.
        """
        date = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        signed = {**{name.lower(): value for name, value in headers.items()}, "host": host, "x-cloud-date": date}
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
        # The path is percent-encoded already, and the signature encodes it again.
        canonical = "\n".join(
            [method, quote(path, safe="/-._~"), query, lines, names, hashlib.sha256(body).hexdigest()]
        )
        scope = [date[:8], self.region, self.service, _TERMINATOR]
        key = ("AWS4" + self.secret_key).encode()
        for part in scope:
            key = _mac(key, part)
        text = "\n".join([_ALGORITHM, date, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
        credential = "/".join([self.access_key, *scope])
        authorization = (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={_mac(key, text).hex()}"
        )
        return {**signed, "authorization": authorization}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
