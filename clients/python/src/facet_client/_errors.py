"""The errors of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

_RETRY_AFTER_MAX = 60.0  # seconds; a refusal with a longer Retry-After is final


class FacetError(Exception):
    """Base of all errors of this package."""


class NoAnswer(FacetError):
    """No node gave an answer. A write may or may not have had its effect."""


class Refusal(FacetError):
    """An answer that reports a refusal or a failure."""

    def __init__(self, operation: str, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.operation = operation
        """Method and path."""
        self.status = status
        self.message: str = str(body.get("message") or _phrase(status))
        self.error_code: int | None = body.get("errorCode")
        self.error_type: str = body.get("errorType") or ""
        self.reason: str = body.get("reason") or ""
        self.score: int | None = body.get("score")
        """The score of a verification below its threshold, else None."""
        self.case_id: str = body.get("caseId") or ""
        """The case that a verification in the review band has opened (reason "Doubtful"), or ""."""
        after = headers.get("Retry-After", "")
        self.retry_after: float = float(after) if after.isdecimal() else 0.0
        """The wait in seconds that the service asks for, or 0."""
        self.request_id: str = headers.get("X-Request-Id", "")
        """Identifies the request in the service's logs."""
        kind = f" {self.error_type}" if self.error_type else ""
        why = f" ({self.reason})" if self.reason else ""
        super().__init__(f"{operation}: {status}{kind}{why}: {self.message} [request {self.request_id}]")

    @property
    def again(self) -> bool:
        """Reports whether another try may succeed soon."""
        if self.retry_after > _RETRY_AFTER_MAX or (self.reason == "Quota" and not self.retry_after):
            return False
        return self.status >= 500 or self.status in (408, 429)


class InvalidRequest(Refusal):
    """400, errorCode 1001."""


class GalleryFull(InvalidRequest):
    """No free slot, and no deleted entry to recycle."""


class UnknownTag(InvalidRequest):
    """The gallery has no such tag."""


class UnreadableImage(InvalidRequest):
    """The file is not an image, or its format is not supported."""


class Duplicate(Refusal):
    """400, errorCode 1002."""


class ServiceTimeout(Refusal):
    """500, errorCode 1003: the service ran out of time at every try."""


class NoFace(Refusal):
    """400, errorCode 2001."""


class PoorQuality(Refusal):
    """400, errorCode 2002."""


class MultipleFaces(Refusal):
    """400, errorCode 2003."""


class ServerFault(Refusal):
    """5xx at every try."""


class Forbidden(Refusal):
    """403: the signature, the role of the access key, or the API key."""


class NotFound(Refusal):
    """404, except NotVerified and SubjectMerged."""


class SubjectMerged(Refusal):
    """404 of a removal: another subject, which the message names, has the faces."""


class NotVerified(Refusal):
    """404 of a verification below its threshold. score is set, and case_id if people review it."""


class OtherSettings(Refusal):
    """412: the settings were changed since the ETag in if_match was read. Nothing is changed."""


class Busy(Refusal):
    """429."""


_BY_REASON: dict[tuple[int, str], type[Refusal]] = {
    (400, "GalleryFull"): GalleryFull,
    (400, "UnknownTag"): UnknownTag,
    (400, "UnreadableImage"): UnreadableImage,
    (404, "NotVerified"): NotVerified,
    (404, "Doubtful"): NotVerified,
    (404, "SubjectMerged"): SubjectMerged,
}
_BY_TYPE: dict[str, type[Refusal]] = {
    "InvalidRequest": InvalidRequest,
    "Duplicate": Duplicate,
    "Timeout": ServiceTimeout,
    "NoFace": NoFace,
    "PoorQuality": PoorQuality,
    "MultipleFaces": MultipleFaces,
}
_BY_STATUS: dict[int, type[Refusal]] = {403: Forbidden, 404: NotFound, 412: OtherSettings, 429: Busy}


def refusal(operation: str, status: int, text: bytes, headers: Mapping[str, str]) -> Refusal:
    """Returns the error in an answer. Ignores a body that is not a JSON object."""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    kind = (
        _BY_REASON.get((status, str(body.get("reason"))))
        or _BY_TYPE.get(str(body.get("errorType")))
        or _BY_STATUS.get(status)
        or (ServerFault if status >= 500 else Refusal)
    )
    return kind(operation, status, body, headers)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no message"
