"""Client of the face matching service facet: register faces, search, verify.

    from facet_client import Client

    with Client.from_dev("dev/dev.json") as client:
        print(client.galleries())

The client repeats a request that gets no answer, or a temporary refusal, at the next
node and with growing pauses. A write has the same Idempotency-Key at every try, so it
has one effect. A refusal is a `Refusal`, or the subclass of its kind: `NoFace`,
`GalleryFull` and so on.

A search that finds nobody returns an empty list. A verification that fails raises
`NotVerified`, so code that forgets to check never takes it for a match.
"""

from ._client import V1, Client, external
from ._errors import (
    Busy,
    Duplicate,
    FacetError,
    Forbidden,
    GalleryFull,
    InvalidRequest,
    MultipleFaces,
    NoAnswer,
    NoFace,
    NotFound,
    NotVerified,
    PoorQuality,
    Refusal,
    ServerFault,
    ServiceTimeout,
    SubjectMerged,
    UnknownTag,
    UnreadableImage,
)
from ._models import (
    Application,
    ApplicationEntry,
    Attributes,
    BulkItem,
    BulkPage,
    BulkRecord,
    Candidate,
    Check,
    CheckedRow,
    Entry,
    Event,
    Gallery,
    IgnoredFace,
    Job,
    Match,
    MatchPage,
    Measure,
    Point,
    Probed,
    Rectangle,
    Registered,
    Scored,
    ScoredRow,
    SearchResult,
    SeenFace,
    Subject,
    SubjectList,
    Verified,
)

__all__ = [
    "V1",
    "Application",
    "ApplicationEntry",
    "Attributes",
    "BulkItem",
    "BulkPage",
    "BulkRecord",
    "Busy",
    "Candidate",
    "Check",
    "CheckedRow",
    "Client",
    "Duplicate",
    "Entry",
    "Event",
    "FacetError",
    "Forbidden",
    "Gallery",
    "GalleryFull",
    "IgnoredFace",
    "InvalidRequest",
    "Job",
    "Match",
    "MatchPage",
    "Measure",
    "MultipleFaces",
    "NoAnswer",
    "NoFace",
    "NotFound",
    "NotVerified",
    "Point",
    "PoorQuality",
    "Probed",
    "Rectangle",
    "Refusal",
    "Registered",
    "Scored",
    "ScoredRow",
    "SearchResult",
    "SeenFace",
    "ServerFault",
    "ServiceTimeout",
    "Subject",
    "SubjectList",
    "SubjectMerged",
    "UnknownTag",
    "UnreadableImage",
    "Verified",
    "external",
]
