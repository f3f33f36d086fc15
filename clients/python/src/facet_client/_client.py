"""The operations of the interface."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Unpack

from ._answers import (
    Application,
    ApplicationEntry,
    Attributes,
    AuditPage,
    BulkPage,
    BulkRecord,
    Case,
    CasePage,
    Check,
    CheckedRow,
    Comparison,
    DifferentPair,
    DifferentPairs,
    Duplicates,
    Entry,
    Event,
    Gallery,
    Job,
    Match,
    MatchPage,
    Pair,
    Registered,
    SearchResult,
    SeenFace,
    Subject,
    SubjectList,
    Verified,
    Whoami,
)
from ._errors import FacetError
from ._models import BulkItem, camel, read
from ._receipts import Receipts
from ._settings import ApplicationChange, ApplicationSettings, GalleryChange, GallerySettings
from ._sign import Signer, escape
from ._transport import FREELY, GONE, KEYED, THERE, TIMEOUT, TRIES, Nodes, Operation, Transport, checked, path

Order = Literal["asc", "desc"]
_DIFFERENT = "/v1.1/jobs/duplicates/different"
_PAGE = 1000  # the longest page of the subject list
_QUALITY = 0.45  # the lowest one that the service takes
_REGION, _SERVICE = "ap-southeast-2", "execute-api"  # of signatures


class Client:
    """Calls a cluster.

    Images are the bytes of image files. Every write that creates or changes something
    takes an idempotency_key, 1 to 128 printable ASCII characters. Pass one if another
    process may have to repeat the write. By default each call makes a random one.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        access_key: str,
        secret_key: str,
        *,
        api_key: str | None = None,
        purpose: str | None = None,
        portal_urls: Sequence[str] = (),
        ca_file: str | None = None,
        region: str = _REGION,
        service: str = _SERVICE,
        tries: int = TRIES,
        timeout: float = TIMEOUT,
    ) -> None:
        """Makes a client, without connecting. base_urls are the nodes, each
        https://host:port. portal_urls are the nodes for tenant management, by default
        the same. purpose is that of with_purpose. tries is the most times that a request is
        sent, timeout the seconds of one try."""
        if not access_key or not secret_key:
            raise ValueError("no access key or no secret key")
        base = Nodes(list(base_urls))
        portal = Nodes(list(portal_urls)) if portal_urls else base
        self._transport = Transport(
            base, portal, Signer(access_key, secret_key, region, service), ca_file, max(1, tries), timeout
        )
        self._api_key = api_key
        self._purpose = checked(purpose)
        self._receipts = Receipts()

    @classmethod
    def from_profile(cls, file: str | Path, *, api_key: str | None = None) -> Client:
        """Returns a client of the cluster and the tenant that a profile names, as `facet
        tenant create --save` writes it. A relative ca_file starts at the profile's folder."""
        p = json.loads(Path(file).read_text())
        for name in ("base_urls", "access_key", "secret_key"):
            if not p.get(name):
                raise ValueError(f"the profile {file} has no {name}")
        client = cls(
            p["base_urls"],
            p["access_key"],
            p["secret_key"],
            api_key=api_key or p.get("api_key"),
            portal_urls=p.get("portal_urls") or (),
            ca_file=str(Path(file).parent / p["ca_file"]) if p.get("ca_file") else None,
            region=p.get("region") or _REGION,
            service=p.get("service") or _SERVICE,
        )
        if p.get("ca"):
            client._transport.trust(p["ca"])
        return client

    @classmethod
    def from_dev(cls, file: str | Path, *, api_key: str | None = None) -> Client:
        """Returns a client of the cluster that the dev.json of `facet dev` describes."""
        return cls.from_profile(file, api_key=api_key)

    def with_api_key(self, api_key: str) -> Client:
        """Returns a client for another application, with the same connections."""
        other = copy(self)
        other._api_key, other._receipts = api_key, Receipts()
        return other

    def with_purpose(self, purpose: str | None) -> Client:
        """Returns a client whose requests state the caller's ground, such as "case 4711", in the
        signed header x-purpose. The audit log keeps it: at most 256 printable ASCII characters."""
        other = copy(self)
        other._purpose = checked(purpose)
        return other

    def close(self) -> None:
        """Closes the connections."""
        self._transport.session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def v1(self) -> V1:
        """Returns the operations of version 1."""
        return V1(self)

    def _call(self, op: Operation) -> Any:
        return self._transport.call(op, self._api_key, self._purpose)

    def _photo(
        self,
        method: str,
        at: str,
        image: bytes,
        tags: Iterable[str] | None,
        key: str | None,
        external_id: str | None = None,
        user_data: Mapping[str, Any] | None = None,
        expires: datetime | Literal[""] | None = None,
    ) -> Registered:
        body: dict[str, Any] = {"face": _base64(image)}
        if tags is not None:
            body["tags"] = list(tags)
        body |= _given(externalId=external_id, userData=user_data)
        if expires is not None:
            body["expires"] = expires and _time(expires)
        return read(Registered, self._call(Operation(method, at, body=body, repeat=KEYED, key=key)))

    # Subjects and events

    def health(self) -> None:
        """Raises an error unless the service answers that it is healthy."""
        self._call(Operation("GET", "/v1.1/health"))

    def whoami(self) -> Whoami:
        """Returns what the client's access key may do. Raises Forbidden if it can't use the client's
        API key."""
        return read(Whoami, self._call(Operation("GET", "/v1.1/whoami")))

    def register(
        self,
        image: bytes,
        tags: Iterable[str] | None = None,
        *,
        external_id: str | None = None,
        user_data: Mapping[str, Any] | None = None,
        expires: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Registered:
        """Creates a subject with one event. external_id is your own id of it, unique in the
        gallery, user_data any JSON object, and expires when the event is removed."""
        return self._photo("POST", "/v1.1/subjects", image, tags, idempotency_key, external_id, user_data, expires)

    def update(
        self,
        subject_id: str,
        image: bytes,
        tags: Iterable[str] | None = None,
        *,
        external_id: str | None = None,
        user_data: Mapping[str, Any] | None = None,
        expires: datetime | Literal[""] | None = None,
        idempotency_key: str | None = None,
    ) -> Registered:
        """Replaces the subject's oldest event. None keeps its tags, external id, user data and
        time of expiry; [], "", {} and "" remove them."""
        at = path("v1.1", "subjects", subject_id)
        return self._photo("PUT", at, image, tags, idempotency_key, external_id, user_data, expires)

    def unregister(self, subject_id: str) -> None:
        """Removes a subject with its events."""
        self._call(Operation("DELETE", path("v1.1", "subjects", subject_id), repeat=GONE))

    def events(self, subject_id: str) -> list[str]:
        """Returns the ids of a subject's events."""
        return [event.id for event in self.list_events(subject_id)]

    def list_events(self, subject_id: str) -> list[Event]:
        """Returns a subject's events."""
        return self.subject(subject_id).events

    def subject(self, subject_id: str) -> Subject:
        """Returns a subject."""
        return read(Subject, self._call(Operation("GET", path("v1.1", "subjects", subject_id, "events"))))

    def register_event(
        self,
        subject_id: str,
        image: bytes,
        tags: Iterable[str] | None = None,
        *,
        expires: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Registered:
        """Adds an event to a subject."""
        at = path("v1.1", "subjects", subject_id, "events")
        return self._photo("POST", at, image, tags, idempotency_key, expires=expires)

    def update_event(
        self,
        subject_id: str,
        event_id: str,
        image: bytes,
        tags: Iterable[str] | None = None,
        *,
        expires: datetime | Literal[""] | None = None,
        idempotency_key: str | None = None,
    ) -> Registered:
        """Replaces the photo of an event. None keeps its tags and its time of expiry, [] and ""
        remove them."""
        at = path("v1.1", "subjects", subject_id, "events", event_id)
        return self._photo("PUT", at, image, tags, idempotency_key, expires=expires)

    def merge(self, subject_id: str, source: str, idempotency_key: str | None = None) -> None:
        """Moves the events of the subject source, with new ids, to another subject of the
        gallery, and removes source. It takes about five seconds."""
        at = path("v1.1", "subjects", subject_id, "merge")
        self._call(Operation("POST", at, body={"source": source}, repeat=KEYED, key=idempotency_key))

    def unregister_event(self, subject_id: str, event_id: str) -> None:
        """Removes an event. Removing the last one removes the subject."""
        self._call(Operation("DELETE", path("v1.1", "subjects", subject_id, "events", event_id), repeat=GONE))

    def subjects(
        self, start: int = 0, length: int = _PAGE, order: Order | None = None, after: str | None = None
    ) -> SubjectList:
        """Returns a part of the subject list, in order of the last update. It may be empty.
        after is the next of an earlier page; it has the order, and excludes start."""
        parts = [] if after is None else [f"after={escape(after)}"]  # in the order of the keys
        if order is not None:
            parts.append(f"dir={escape(order)}")
        parts.append(f"length={length:d}")
        if start or after is None:
            parts.append(f"start={start:d}")
        query = "&".join(parts)
        return read(SubjectList, self._call(Operation("GET", "/v1.1/subjects", query=query, empty="subjects")))

    def subjects_with(self, external_id: str) -> SubjectList:
        """Returns the active events of the subject that has an external id. It may be empty."""
        query = f"externalId={escape(external_id)}"
        return read(SubjectList, self._call(Operation("GET", "/v1.1/subjects", query=query, empty="subjects")))

    def expiring(self, before: datetime, length: int = _PAGE, after: str | None = None) -> SubjectList:
        """Returns a part of the list of what expires before a time, soonest first. total counts
        all of it. after is the next of an earlier page. Changes nothing."""
        parts = [] if after is None else [f"after={escape(after)}"]  # in the order of the keys
        parts += [f"expiresBefore={escape(_time(before))}", f"length={length:d}"]
        query = "&".join(parts)
        return read(SubjectList, self._call(Operation("GET", "/v1.1/subjects", query=query, empty="subjects")))

    def all_subjects(self, order: Order = "asc") -> Iterator[Entry]:
        """Iterates over the whole subject list. An entry that stays as it is meanwhile
        occurs exactly once. A changed subject has another entry at the end of the list, so it
        may occur twice in ascending order, and be missing in descending order."""
        page = self.subjects(order=order)
        if page.next is None and len(page.subjects) < page.total:
            raise FacetError("the service gives no cursors: upgrade all of its nodes")
        yield from page.subjects
        while page.next is not None:
            page = self.subjects(after=page.next)
            yield from page.subjects

    # Faces

    def extract(self, image: bytes, limit: int | None = None) -> list[Attributes]:
        """Returns the faces of a photo, largest first, and at most limit of them: by default 10, never above 20."""
        body = _given(faces=_base64(image), limit=limit)
        return _faces(self._call(Operation("POST", "/v1.1/face/extract", body=body)))

    def extract_measured(self, image: bytes, limit: int | None = None) -> list[SeenFace]:
        """Does what extract does, with measures and defects of each face."""
        body = _given(faces=_base64(image), limit=limit, measures=True)
        answer = self._call(Operation("POST", "/v1.1/face/extract", body=body))
        return [read(SeenFace, face) for face in answer["faces"]]

    def verify_subject(self, subject_id: str, probe: bytes | Sequence[bytes]) -> int:
        """Returns the best score of a probe against the subject's events. Raises
        NotVerified below the application's threshold. The probe may be a list of 2 to 10
        photos of one person; each counts as a request."""
        return self.verify(subject_id, probe).score

    def verify(self, subject_id: str, probe: bytes | Sequence[bytes], *, reference: str | None = None) -> Verified:
        """Does what verify_subject does, and returns the subject, too. reference names the probe, in at
        most 256 bytes, for people who review a doubtful score."""
        body = _given(id=subject_id, **_probe(probe), reference=reference)
        return read(Verified, self._call(Operation("POST", "/v1.1/face/verify", body=body)))

    def verify_faces(self, face: bytes, probe: bytes | Sequence[bytes]) -> int:
        """Returns the score of two photos with one face each. Raises NotVerified below
        7000. Needs no API key. The probe may be a list, as in verify_subject."""
        body = {"face": _base64(face), **_probe(probe)}
        return int(self._call(Operation("POST", "/v1.1/face/verify", body=body))["score"])

    def search(
        self,
        probe: bytes | Sequence[bytes],
        *,
        threshold: int | None = None,
        limit: int | None = None,
        tags: Iterable[str] | None = None,
        receipt: bool = False,
    ) -> SearchResult:
        """Returns the subjects that a photo may show. threshold is the lowest score of a
        candidate (by default 7000), limit the most events in the answer (by default 10).
        tags limits the search to events with at least one of them. The probe may be a list
        of 2 to 10 photos of one person; each counts as a request. With receipt it asks for
        a receipt and checks it, also against those of this client's earlier searches.
        Raises ReceiptError if it does not hold."""
        body = _given(
            **_probe(probe),
            threshold=threshold,
            limit=limit,
            tags=None if tags is None else list(tags),
            receipt=receipt or None,
        )
        before = self._receipts.now()
        operation = Operation("POST", "/v1.1/face/search", body=body, empty="candidates")
        found = read(SearchResult, self._call(operation))
        if receipt:
            self._receipts.check(found.receipt, bool(body.get("tags")), before)
        return found

    def match_page(
        self, probe: bytes, *, threshold: int | None = None, length: int | None = None, after: str | None = None
    ) -> MatchPage:
        """Returns a page of the gallery's subjects whose best score with a photo is at least
        threshold (by default 7000). after is the next of the page before. Needs the role admin."""
        body = _given(probe=_base64(probe), threshold=threshold, length=length, after=after)
        return read(MatchPage, self._call(Operation("POST", "/v1.1/face/matches", body=body)))

    def matches(self, probe: bytes, *, threshold: int | None = None) -> Iterator[Match]:
        """Iterates over all subjects at or above the threshold. One that stays at or above it
        meanwhile occurs exactly once."""
        page = self.match_page(probe, threshold=threshold)
        yield from page.candidates
        while page.next is not None:
            page = self.match_page(probe, threshold=threshold, after=page.next)
            yield from page.candidates

    def compare(self, faces: Iterable[bytes | str]) -> Comparison:
        """Compares up to 200 photos, and with tokens of earlier ones up to 1,000 faces, with each
        other. bytes are a photo with one face, and a str is a token. The service keeps nothing of
        them. Each photo counts as a request. Needs no API key."""
        body = {"faces": [{"token": f} if isinstance(f, str) else {"face": _base64(f)} for f in faces]}
        return read(Comparison, self._call(Operation("POST", "/v1.1/face/compare", body=body)))

    def begin_check(self) -> Check:
        """Begins a check of a list: it tells what registrations would do, and enrols nothing. One
        node keeps it in memory, until end_check, until ten minutes without a row, or until the
        node stops."""
        return read(Check, self._call(Operation("POST", "/v1.1/face/checks")))

    def check_row(
        self,
        check_id: str,
        row: int,
        image: bytes,
        tags: Iterable[str] | None = None,
        *,
        external_id: str | None = None,
        user_data: Mapping[str, Any] | None = None,
        expires: datetime | None = None,
    ) -> CheckedRow:
        """Tells what register would do, and raises what it would. row is your number of the
        photo; the same one again replaces itself. Raises NotFound with the reason UnknownCheck
        when the check is lost."""
        body = _given(
            row=row,
            face=_base64(image),
            tags=None if tags is None else list(tags),
            externalId=external_id,
            userData=user_data,
            expires=None if expires is None else _time(expires),
        )
        return read(CheckedRow, self._call(Operation("POST", path("v1.1", "face", "checks", check_id), body=body)))

    def end_check(self, check_id: str) -> None:
        """Ends a check: the service forgets its faces."""
        self._call(Operation("DELETE", path("v1.1", "face", "checks", check_id), repeat=GONE))

    # Tags

    def tags(self) -> list[str]:
        """Returns the gallery's tags in order of creation."""
        return [str(name) for name in self._call(Operation("GET", "/v1.1/tags"))]

    def create_tag(self, name: str) -> None:
        """Creates a tag. When the answer to a try is lost, and a tag has the name at the
        next try, that counts as success."""
        self._call(Operation("POST", path("v1.1", "tags", name), repeat=THERE))

    def rename_tag(self, name: str, new_name: str) -> None:
        """Renames a tag. Events keep it. When the answer to a try is lost, the next try
        may raise NotFound although the tag was renamed."""
        self._call(Operation("PUT", path("v1.1", "tags", name), body={"newName": new_name}))

    def delete_tag(self, name: str) -> None:
        """Deletes a tag. Subjects and events stay."""
        self._call(Operation("DELETE", path("v1.1", "tags", name), repeat=GONE))

    # Jobs

    def bulk_register(self, items: Iterable[BulkItem], *, idempotency_key: str | None = None) -> str:
        """Starts a job that registers photos of the object store. Returns its batch id."""
        body = {
            "registrations": [
                _given(
                    filename=i.filename,
                    tags=i.tags,
                    externalId=i.external_id,
                    userData=i.user_data,
                    expires=i.expires and _time(i.expires),
                )
                for i in items
            ]
        }
        op = Operation("POST", "/v1.1/jobs/bulkregister", body=body, repeat=KEYED, key=idempotency_key)
        return str(self._call(op)["batchId"])

    def jobs(self) -> list[Job]:
        """Returns the gallery's newest jobs, at most 1000, the one that changed last first."""
        return [read(Job, j) for j in self._call(Operation("GET", "/v1.1/jobs/bulkregister"))["jobs"]]

    def bulk_progress(self, batch_id: str, paging_id: str = "") -> BulkPage:
        """Returns a page of a job's records: the first one, or the one that paging_id names."""
        more = (paging_id,) if paging_id else ()
        return read(BulkPage, self._call(Operation("GET", path("v1.1", "jobs", "bulkregister", batch_id, *more))))

    def bulk_records(self, batch_id: str) -> Iterator[BulkRecord]:
        """Iterates over all records of a job."""
        paging_id = ""
        while True:
            page = self.bulk_progress(batch_id, paging_id)
            yield from page.processed
            paging_id = page.last_evaluated_key
            if not paging_id:
                return

    def begin_duplicates(self, threshold: int | None = None, idempotency_key: str | None = None) -> str:
        """Begins to look for pairs of subjects with at least this score (by default 9000), and returns
        the job's id. The report of the gallery's former comparison goes. Needs the role admin."""
        op = Operation(
            "POST", "/v1.1/jobs/duplicates", body=_given(threshold=threshold), repeat=KEYED, key=idempotency_key
        )
        return str(self._call(op)["batchId"])

    def duplicates(self, after: str | None = None, length: int | None = None) -> Duplicates:
        """Returns how far the comparison is and, after its end, a page of the pairs. after is the
        next of the page before."""
        parts = [] if after is None else [f"after={escape(after)}"]  # in the order of the keys
        if length is not None:
            parts.append(f"length={length:d}")
        return read(Duplicates, self._call(Operation("GET", "/v1.1/jobs/duplicates", query="&".join(parts))))

    def pairs(self) -> Iterator[Pair]:
        """Iterates over all pairs of a comparison that has ended, group by group."""
        page = self.duplicates()
        yield from page.pairs
        while page.next is not None:
            page = self.duplicates(page.next)
            yield from page.pairs

    def end_duplicates(self) -> None:
        """Drops the report, and ends a comparison under way."""
        self._call(Operation("DELETE", "/v1.1/jobs/duplicates", repeat=GONE))

    def set_different(self, subject_id: str, other_id: str) -> None:
        """Says that two subjects are different people, so that reports leave their pair out. Needs the role admin."""
        self._call(Operation("PUT", path("v1.1", "jobs", "duplicates", "different", subject_id, other_id), repeat=FREELY))

    def unset_different(self, subject_id: str, other_id: str) -> None:
        """Takes back that two subjects are different people."""
        self._call(Operation("DELETE", path("v1.1", "jobs", "duplicates", "different", subject_id, other_id), repeat=GONE))

    def different(self) -> Iterator[DifferentPair]:
        """Iterates over the pairs of different subjects."""
        page = read(DifferentPairs, self._call(Operation("GET", _DIFFERENT)))
        yield from page.pairs
        while page.next is not None:
            query = f"after={escape(page.next)}"
            page = read(DifferentPairs, self._call(Operation("GET", _DIFFERENT, query=query)))
            yield from page.pairs

    def case_page(self, state: str | None = None, *, length: int | None = None, after: str | None = None) -> CasePage:
        """Returns a page of the cases of the gallery that are "open" or "closed", the oldest first. after
        is the next of the page before. Needs the role admin or reviewer, as the other calls on cases do."""
        parts = [] if after is None else [f"after={escape(after)}"]  # in the order of the keys
        if length is not None:
            parts.append(f"length={length:d}")
        if state is not None:
            parts.append(f"state={escape(state)}")
        return read(CasePage, self._call(Operation("GET", "/v1.1/cases", query="&".join(parts))))

    def cases(self, state: str | None = None) -> Iterator[Case]:
        """Iterates over the cases of a state, the oldest first."""
        page = self.case_page(state)
        yield from page.cases
        while page.next is not None:
            page = self.case_page(state, after=page.next)
            yield from page.cases

    def case(self, case_id: str) -> Case:
        """Returns one case."""
        return read(Case, self._call(Operation("GET", path("v1.1", "cases", case_id))))

    def decide(self, case_id: str, verdict: str) -> Case:
        """Says whether both photos of a case show one person, "same" or "different", and returns the case."""
        body = {"verdict": verdict}
        return read(Case, self._call(Operation("PUT", path("v1.1", "cases", case_id, "verdict"), body=body, repeat=FREELY)))

    # Tenant management

    def galleries(self) -> list[Gallery]:
        """Returns the tenant's galleries."""
        return [read(Gallery, g) for g in self._portal("GET", "galleries")["galleries"]]

    def gallery(self, gallery_id: str) -> Gallery:
        """Returns a gallery with its applications."""
        return read(Gallery, self._portal("GET", "galleries", gallery_id))

    def create_gallery(
        self,
        name: str,
        size: int,
        *,
        face_minimum_quality_score: float = _QUALITY,
        idempotency_key: str | None = None,
        **settings: Unpack[GallerySettings],
    ) -> Gallery:
        """Creates a gallery and an application for it. The answer contains its API key."""
        own = {"name": name, "size": size, "faceMinimumQualityScore": face_minimum_quality_score}
        body = own | _settings(GallerySettings, settings)
        return read(Gallery, self._portal("POST", "galleries", body=body, key=idempotency_key))

    def update_gallery(
        self,
        gallery_id: str,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **settings: Unpack[GalleryChange],
    ) -> Gallery:
        """Changes the settings that are not None. if_match is the ETag that the gallery must have: with another one
        OtherSettings is raised."""
        body = _settings(GalleryChange, settings)
        return read(Gallery, self._portal("PATCH", "galleries", gallery_id, body=body, key=idempotency_key, if_match=if_match))

    def delete_gallery(self, gallery_id: str) -> None:
        """Deletes a gallery with its subjects and applications."""
        self._portal("DELETE", "galleries", gallery_id)

    def applications(self) -> list[ApplicationEntry]:
        """Returns the tenant's applications."""
        return [read(ApplicationEntry, a) for a in self._portal("GET", "applications")["applications"]]

    def application(self, application_id: str) -> Application:
        """Returns an application."""
        return read(Application, self._portal("GET", "applications", application_id))

    def create_application(
        self,
        gallery_id: str,
        name: str,
        *,
        face_minimum_quality_score: float = _QUALITY,
        idempotency_key: str | None = None,
        **settings: Unpack[ApplicationSettings],
    ) -> Application:
        """Creates an application of a gallery."""
        own = {"galleryId": gallery_id, "name": name, "faceMinimumQualityScore": face_minimum_quality_score}
        body = own | _settings(ApplicationSettings, settings)
        return read(Application, self._portal("POST", "applications", body=body, key=idempotency_key))

    def update_application(
        self,
        application_id: str,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        **settings: Unpack[ApplicationChange],
    ) -> Application:
        """Changes the settings that are not None. if_match is that of update_gallery."""
        body = _settings(ApplicationChange, settings)
        answer = self._portal("PATCH", "applications", application_id, body=body, key=idempotency_key, if_match=if_match)
        return read(Application, answer)

    def delete_application(self, application_id: str) -> None:
        """Deletes an application. The service then refuses its API key."""
        self._portal("DELETE", "applications", application_id)

    def audit_records(
        self,
        *,
        operation: str | None = None,
        holder: str | None = None,
        key: str | None = None,
        kind: str | None = None,
        status: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        reads: bool = True,
        content: bool = False,
        before: int | None = None,
        length: int | None = None,
    ) -> AuditPage:
        """Returns a page of the tenant's audit log, the newest record first. operation is a part of it, such as "search". reads
        False leaves out reads of the log. before is the next of the page before. Needs the role auditor or admin."""
        given = _given(
            operation=operation, holder=holder, key=key, kind=kind, status=status, before=before, length=length,
            since=since and _time(since), until=until and _time(until),
            reads=None if reads else "false", content="true" if content else None,
        )  # fmt: skip
        query = "&".join(f"{name}={escape(str(given[name]))}" for name in sorted(given))
        return read(AuditPage, self._call(Operation("GET", "/api/audit", query=query, portal=True)))

    def audit_file(self, name: str) -> bytes:
        """Returns a file of the audit log by its path in C2SP's tlog-tiles: "checkpoint", a tile, or a bundle of entries. "key" is
        the log's verifier key. Needs the role auditor or admin."""
        at = path("api", "audit", *name.split("/"))
        answer: bytes = self._call(Operation("GET", at, portal=True, raw=True))
        return answer

    def _portal(
        self,
        method: str,
        *segments: str,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        if_match: str | None = None,
    ) -> Any:
        repeat = {"GET": FREELY, "DELETE": GONE}.get(method, KEYED)
        return self._call(
            Operation(
                method, path("api", *segments), body=body, portal=True, repeat=repeat, key=key, if_match=if_match
            )
        )


class V1:
    """Version 1 of the interface, which has no events and no tags. New code should not use it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def register(self, image: bytes, *, idempotency_key: str | None = None) -> Registered:
        """Creates a subject. The answer has no event id."""
        return self._client._photo("POST", "/v1/subjects", image, None, idempotency_key)

    def update(self, subject_id: str, image: bytes, *, idempotency_key: str | None = None) -> Registered:
        """Replaces the subject's oldest event."""
        return self._client._photo("PUT", path("v1", "subjects", subject_id), image, None, idempotency_key)

    def unregister(self, subject_id: str) -> None:
        """Removes a subject."""
        self._client._call(Operation("DELETE", path("v1", "subjects", subject_id), repeat=GONE))

    def extract(self, image: bytes) -> list[Attributes]:
        """Returns the faces of a photo, at most 10. Raises NotFound when there is none."""
        return _faces(self._client._call(Operation("POST", "/v1/face/extract", body={"faces": _base64(image)})))

    def search(self, probe: bytes, *, threshold: int | None = None, limit: int | None = None) -> SearchResult:
        """Returns the subjects that a photo may show, at most limit."""
        body = _given(probe=_base64(probe), threshold=threshold, limit=limit)
        return read(
            SearchResult, self._client._call(Operation("POST", "/v1/face/search", body=body, empty="candidates"))
        )

    def verify(self, subject_id: str, probe: bytes) -> int:
        """Returns the score of a probe against a subject. Raises NotVerified below the threshold."""
        body = {"id": subject_id, "probe": _base64(probe)}
        return int(self._client._call(Operation("POST", "/v1/face/verify", body=body))["score"])


def external(external_id: str) -> str:
    """Returns what stands for the id of the subject with an external id, as a subject_id."""
    return f"externalId:{external_id}"


def _probe(probe: bytes | Sequence[bytes]) -> dict[str, Any]:
    """Returns the member that has one photo, or that has several."""
    if isinstance(probe, (bytes, bytearray, memoryview)):
        return {"probe": _base64(probe)}
    return {"probes": [_base64(photo) for photo in probe]}


def _base64(image: bytes) -> str:
    return base64.b64encode(image).decode()


def _time(at: datetime) -> str:
    """Returns a time on the wire. One without a zone is the machine's own."""
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds")


def _settings(kind: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that are given. Raises a TypeError for one that the kind does not have."""
    if unknown := settings.keys() - kind.__optional_keys__:
        raise TypeError(f"there is no setting {min(unknown)}")
    return _given(**{camel(name): value for name, value in settings.items()})


def _given(**members: Any) -> dict[str, Any]:
    """Returns the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _faces(answer: Any) -> list[Attributes]:
    return [read(Attributes, face["attributes"]) for face in answer["faces"]]
