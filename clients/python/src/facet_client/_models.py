"""The service's answers as dataclasses. The fields have the interface's names in
Python's spelling."""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ._errors import FacetError

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """A place in an image, in pixels."""

    x: int
    y: int


@dataclass(frozen=True)
class Rectangle:
    """A part of an image, in pixels."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True)
class Attributes:
    """A face. Right and left are the person's own, angles are in degrees."""

    face_area: Rectangle
    head_area: Rectangle
    right_eye_center: Point
    left_eye_center: Point
    face_score: float
    frontal_face_score: float
    face_quality_score: float
    face_roll: float
    face_pan: float
    face_tilt: float


@dataclass(frozen=True)
class Measure:
    """A native measure, and the quality component made of it, 0 (bad) to 100."""

    native: float
    component: float


@dataclass(frozen=True)
class SeenFace:
    """A face of a photo. measures say how it was photographed, by the components of
    ISO/IEC 29794-5, for example "sharpness". defects are the reasons for which an enrolment
    would refuse it, for example "FaceCut"."""

    attributes: Attributes
    measures: dict[str, Measure]
    defects: list[str]


@dataclass(frozen=True)
class IgnoredFace:
    """A face on a photo beside the one that was taken."""

    face_area: Rectangle
    face_quality_score: float


@dataclass(frozen=True)
class Registered:
    """The answer to a registration or an update. event_id is empty in version 1. ignored_faces
    are other faces on the photo; only an application with multiple_faces="dominant" ignores some."""

    id: str
    attributes: Attributes
    event_id: str = ""
    ignored_faces: list[IgnoredFace] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """One line of the subject list. It is one event. status is "A" (active) or "D" (deleted).
    expires is when it expires, of itself or by its gallery's retention, or None."""

    id: str
    event_id: str
    status: str
    last_updated: datetime
    external_id: str = ""
    user_data: dict[str, Any] | None = None
    expires: datetime | None = None


@dataclass(frozen=True)
class Event:
    """An event of a subject. expires is that of an Entry."""

    id: str
    expires: datetime | None = None


@dataclass(frozen=True)
class Subject:
    """A subject with its active events, in order of registration. external_id and user_data
    are those of an Entry."""

    id: str
    events: list[Event]
    external_id: str = ""
    user_data: dict[str, Any] | None = None


@dataclass(frozen=True)
class SubjectList:
    """A part of the subject list. total counts the whole list. next is the cursor of the
    page that follows, or None if none does. Every node of the service takes it."""

    subjects: list[Entry]
    total: int
    next: str | None = None


@dataclass(frozen=True)
class Scored:
    """An event and its similarity to the probe."""

    id: str
    score: int


@dataclass(frozen=True)
class Candidate:
    """A subject that a probe may show. score is the larger of subject_score and the score of its
    best event. subject_score is that of the subject's own template, or 0 if the search used none."""

    id: str
    score: int
    events: list[Scored] = field(default_factory=list)
    external_id: str = ""
    user_data: dict[str, Any] | None = None
    subject_score: int = 0


@dataclass(frozen=True)
class Probed:
    """A photo of several probes."""

    attributes: Attributes
    ignored_faces: list[IgnoredFace] = field(default_factory=list)


@dataclass(frozen=True)
class Verified:
    """A subject that a probe shows. probes has the attributes of each of several photos."""

    id: str
    score: int
    external_id: str = ""
    user_data: dict[str, Any] | None = None
    ignored_faces: list[IgnoredFace] = field(default_factory=list)
    probes: list[Probed] = field(default_factory=list)


@dataclass(frozen=True)
class ShardReceipt:
    """The statement of one shard: active events of the gallery at an index of its log, of which searched
    were searched. left_out counts the others by reason. The only reason is "tags": events without a tag of
    the search."""

    shard: int
    index: int
    active: int
    searched: int
    left_out: dict[str, int]


_Numbers = list[int]
_Statements = list[ShardReceipt]


@dataclass(frozen=True)
class Receipt:
    """What a search went through. epoch numbers the gallery's lists of shards, and list is that list."""

    epoch: int
    list: _Numbers
    shards: _Statements


@dataclass(frozen=True)
class SearchResult:
    """The candidates, best first, and the attributes of the probe. With several photos, probes has
    those of each, and attributes are those of the first. receipt is None unless the search asks for one.
    doubtful are candidates whose scores are in the application's review band, below the threshold."""

    candidates: list[Candidate]
    attributes: Attributes
    ignored_faces: list[IgnoredFace] = field(default_factory=list)
    probes: list[Probed] = field(default_factory=list)
    receipt: Receipt | None = None
    doubtful: list[Candidate] = field(default_factory=list)


@dataclass(frozen=True)
class Match:
    """A subject with its best 50 events at or above the threshold. event_count counts all of them.
    subject_score is as in Candidate; if it alone reaches the threshold, events has the best event."""

    id: str
    score: int
    events: list[Scored]
    event_count: int
    subject_score: int = 0


@dataclass(frozen=True)
class MatchPage:
    """A page of matches in the order of ids. The last page has no next."""

    candidates: list[Match]
    next: str | None = None
    ignored_faces: list[IgnoredFace] = field(default_factory=list)


@dataclass(frozen=True)
class FaceError:
    """Why a photo has no face to compare, in the words of a Refusal. With the reason NotDone the
    node had no time: send the photo again."""

    message: str
    error_code: int | None = None
    error_type: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ComparedFace:
    """A photo of a comparison. It has attributes and token, or error. Of a token all are None.
    token stands for the photo in further comparisons."""

    attributes: Attributes | None = None
    token: str | None = None
    error: FaceError | None = None


@dataclass(frozen=True)
class Comparison:
    """The answer to compare. faces are in the order of the request. scores has those of each face
    with each one before it; score finds one. It is None if the node had no time for them: send
    the tokens. expires is until when the tokens of this answer are taken."""

    faces: list[ComparedFace]
    scores: list[int | None] | None = None
    expires: datetime | None = None

    def score(self, i: int, j: int) -> int | None:
        """Returns the score of two faces of the request, or None if one of them has none."""
        i, j = max(i, j), min(i, j)
        return None if i == j or self.scores is None else self.scores[i * (i - 1) // 2 + j]


@dataclass(frozen=True)
class Check:
    """A check of a list. rows_max is the most rows with a face."""

    id: str
    rows_max: int


@dataclass(frozen=True)
class ScoredRow:
    """A row of a check and its similarity to another one."""

    row: int
    score: int


@dataclass(frozen=True)
class CheckedRow:
    """What the registration of a row would do. rows are other rows so far that show the same
    person, candidates enrolled subjects that do; known is the subject that has the external id,
    or ""."""

    row: int
    rows: list[ScoredRow]
    candidates: list[Candidate]
    attributes: Attributes
    known: str = ""
    ignored_faces: list[IgnoredFace] = field(default_factory=list)


@dataclass(frozen=True)
class BulkItem:
    """One photo of a bulk registration. filename is its name in the object store."""

    filename: str
    tags: list[str] | None = None
    external_id: str | None = None
    user_data: dict[str, Any] | None = None
    expires: datetime | None = None


@dataclass(frozen=True)
class BulkRecord:
    """The state of one photo of a job.

    status is "New" or "Processed". When it is "Processed", register_status is
    "Success", and the ids are set, or "Failed", and reason is set.
    """

    id: str
    filename: str
    status: str
    attempts: int
    register_status: str = ""
    reason: str = ""
    subject_id: str = ""
    event_id: str = ""
    attributes_json: str = ""
    external_id: str = ""
    user_data: dict[str, Any] | None = None
    ignored_faces: list[IgnoredFace] = field(default_factory=list)

    @property
    def attributes(self) -> Attributes | None:
        """Returns the parsed attributes_json, or None without a face."""
        return read(Attributes, json.loads(self.attributes_json)) if self.attributes_json else None


@dataclass(frozen=True)
class BulkPage:
    """A page of a job's records. last_evaluated_key is the next paging id, "" on the last page."""

    batch_id: str
    processed: list[BulkRecord]
    last_evaluated_key: str = ""


@dataclass(frozen=True)
class Job:
    """How far a job is: done of total photos were registered or have failed."""

    batch_id: str
    total: int
    done: int
    last_updated: datetime


@dataclass(frozen=True)
class PairSubject:
    """A subject of a pair."""

    id: str
    external_id: str = ""
    user_data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Pair:
    """Two subjects that may show one person. Everybody who is in a pair with somebody is in one group. A pair
    of different subjects has no group and no score."""

    subjects: list[PairSubject]
    group: int = 0
    score: int = 0


@dataclass(frozen=True)
class DifferentPairs:
    """A page of the pairs of different subjects."""

    total: int
    pairs: list[Pair]
    next: str | None = None


@dataclass(frozen=True)
class Duplicates:
    """How far the comparison of a gallery with itself is: done of total parts were compared. status is
    "Running" or "Done". incomplete says that pairs are missing: there are too many, or reason says why. different
    counts the pairs that are left out because of set_different."""

    batch_id: str
    status: str
    threshold: int
    total: int
    done: int
    last_updated: datetime
    found: int
    incomplete: bool
    groups: int
    pairs: list[Pair]
    reason: str = ""
    different: int = 0
    next: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What the holder of an access key has said of a case: "same" or "different"."""

    verdict: str
    time: datetime
    holder: str = ""


@dataclass(frozen=True)
class GalleryRoom:
    """How full a gallery is. count is its active events."""

    id: str
    name: str
    size: int
    count: int


@dataclass(frozen=True)
class Whoami:
    """What an access key may do. galleries are the only ones that it may use; none means all of the
    tenant. gallery is that of the client's API key."""

    role: str
    holder: str = ""
    galleries: list[str] = field(default_factory=list)
    ends: datetime | None = None
    gallery: GalleryRoom | None = None


@dataclass(frozen=True)
class Case:
    """A verification with a score in the review band of its application. state is "open", "same",
    "different", "disputed", "expired" or "erased". An open case has the caller's own verdict only.
    photo_link is that of the gallery; it is not set in a list."""

    id: str
    state: str
    application_id: str
    created: datetime
    verdicts_given: int
    verdicts: list[Verdict]
    verdicts_needed: int = 0
    subject_id: str = ""
    external_id: str = ""
    score: int = 0
    threshold: int = 0
    reference: str = ""
    expires: datetime | None = None
    closed: datetime | None = None
    photo_link: str = ""


@dataclass(frozen=True)
class CasePage:
    """A page of cases, the oldest first. total counts all that the wanted state selects."""

    total: int
    cases: list[Case]
    photo_link: str = ""
    next: str | None = None


@dataclass(frozen=True)
class AuditCandidate:
    """A candidate of an answer. subject is a MAC."""

    subject: str
    score: int


@dataclass(frozen=True)
class AuditRecord:
    """A record of the audit log. Subjects and probes are MACs. An expired one has its number only. content is the
    record's bytes in base64, if they were asked for."""

    number: int
    time: datetime
    kind: str
    operation: str = ""
    status: int = 0
    reason: str = ""
    holder: str = ""
    key: str = ""
    source: str = ""
    request_id: str = ""
    purpose: str = ""
    candidates: list[AuditCandidate] = field(default_factory=list)
    expired: bool = False
    content: str = ""


@dataclass(frozen=True)
class AuditPage:
    """A page of the audit log, which has size records. recording says whether requests have records now."""

    size: int
    recording: bool
    records: list[AuditRecord]
    next: int | None = None


@dataclass(frozen=True)
class ApplicationEntry:
    """An application in a list."""

    id: str
    name: str
    api_key: str


def camel(name: str) -> str:
    """Returns the interface's spelling of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def read(kind: type[T], value: Any) -> T:
    """Returns the kind that a JSON value contains. Ignores unknown members. Raises a
    FacetError for a missing member without default, and for a wrong type."""
    try:
        result: T = _read(kind, value)
    except (ValueError, TypeError) as e:
        raise FacetError(f"the answer can't be read: {e}") from e
    return result


def _read(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if hasattr(kind, "__dataclass_fields__"):
        if not isinstance(value, dict):
            raise ValueError(f"{kind.__name__}: not an object")
        given = {}
        for f in fields(kind):
            if camel(f.name) in value:
                given[f.name] = _read(_hints(kind)[f.name], value[camel(f.name)])
            elif f.default is MISSING and f.default_factory is MISSING:
                raise ValueError(f"{kind.__name__}: no {camel(f.name)}")
        return kind(**given)
    if get_origin(kind) is list:
        if not isinstance(value, list):
            raise ValueError("not an array")
        return [_read(get_args(kind)[0], one) for one in value]
    if get_origin(kind) in (Union, types.UnionType):  # T | None
        return None if value is None else _read(get_args(kind)[0], value)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return {name: _read(get_args(kind)[1], one) for name, one in value.items()}
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind in (int, float) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return kind(value)  # attributes are strings
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return value
