"""Client of the face matching service facet: register faces, search, verify.

    from facet_client import Client

    with Client.from_dev("dev/dev.json") as client:
        print(client.galleries())

A request that gets no answer, or one that says "later", is sent again, to the next
node, with growing pauses; a write carries the same Idempotency-Key at every try, so
that it has one effect. What the service refuses is a `Refusal`, of a class of its
kind: `NoFace`, `GalleryFull` and so on.

That nobody was found is an empty list. That somebody was not verified is an
exception, `NotVerified`: code that forgets to look never takes it for a match.
"""

from ._client import V1, Client
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
    Entry,
    Gallery,
    Point,
    Rectangle,
    Registered,
    Scored,
    SearchResult,
    SubjectList,
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
    "Client",
    "Duplicate",
    "Entry",
    "FacetError",
    "Forbidden",
    "Gallery",
    "GalleryFull",
    "InvalidRequest",
    "MultipleFaces",
    "NoAnswer",
    "NoFace",
    "NotFound",
    "NotVerified",
    "Point",
    "PoorQuality",
    "Rectangle",
    "Refusal",
    "Registered",
    "Scored",
    "SearchResult",
    "ServerFault",
    "ServiceTimeout",
    "SubjectList",
    "UnknownTag",
    "UnreadableImage",
]
