"""Tests with a real cluster and real photos."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import ANOTHER_OBAMA, BIDEN, OBAMA, ROCKET, THREE_PEOPLE, photo

import facet_client
from facet_client import ApplicationEntry, BulkItem, Client


def test_person_is_found_on_another_photo(client: Client) -> None:
    made = client.register(photo(OBAMA))
    a = made.attributes
    assert made.event_id and a.face_quality_score >= 0.45 and a.right_eye_center.x < a.left_eye_center.x
    found = client.search(photo(ANOTHER_OBAMA))
    assert [c.id for c in found.candidates] == [made.id] and found.candidates[0].score >= 7000
    assert [e.id for e in found.candidates[0].events] == [made.event_id]
    assert client.search(photo(BIDEN)).candidates == []
    several = client.search([photo(ANOTHER_OBAMA), photo(OBAMA)])
    assert [c.id for c in several.candidates] == [made.id] and several.attributes == found.attributes
    assert [p.attributes.face_area for p in several.probes] == [found.attributes.face_area, a.face_area]
    with pytest.raises(facet_client.Refusal, match="don't show the same person"):
        client.search([photo(OBAMA), photo(BIDEN)])
    assert [m.id for m in client.matches(photo(ANOTHER_OBAMA))] == [made.id]
    (stranger,) = client.search(photo(BIDEN), threshold=0, limit=1).candidates
    assert stranger.score < 7000
    assert client.verify_subject(made.id, photo(ANOTHER_OBAMA)) == found.candidates[0].score
    assert client.verify_faces(photo(OBAMA), photo(ANOTHER_OBAMA)) == found.candidates[0].score
    with pytest.raises(facet_client.NotVerified) as no:
        client.verify_subject(made.id, photo(BIDEN))
    assert no.value.score == stranger.score and len(no.value.request_id) == 32
    with pytest.raises(facet_client.NotFound):
        client.verify_subject("nobody ü/%25", photo(BIDEN))


def test_refusals_have_classes(client: Client, dev: dict[str, Any]) -> None:
    def refused(image: bytes, kind: type[facet_client.Refusal], tags: list[str] | None = None) -> None:
        with pytest.raises(facet_client.Refusal) as e:
            client.register(image, tags)
        assert type(e.value) is kind and e.value.status == 400

    refused(photo(ROCKET), facet_client.NoFace)
    refused(photo(THREE_PEOPLE), facet_client.MultipleFaces)
    refused(b"no image", facet_client.UnreadableImage)
    refused(b"", facet_client.UnreadableImage)
    refused(photo(OBAMA), facet_client.UnknownTag, ["no such tag"])
    small = client.with_api_key(client.create_gallery("python full", 1).api_key)
    small.register(photo(OBAMA), [])
    with pytest.raises(facet_client.GalleryFull) as full:
        small.register(photo(BIDEN))
    assert isinstance(full.value, facet_client.InvalidRequest) and full.value.error_code == 1001
    with pytest.raises(facet_client.Forbidden, match="Forbidden"):
        client.with_api_key("").unregister("x")
    with pytest.raises(facet_client.NotFound):
        client.unregister("../a b?c=d#e+é%2F")  # signed as it is sent
    assert len(client.extract(photo(THREE_PEOPLE), 2)) == 2
    (seen,) = client.extract_measured(photo(THREE_PEOPLE), 1)
    assert seen.attributes.face_area.right > 0 and seen.measures["sharpness"].component > 50 and seen.defects == []
    wrong = Client(dev["base_urls"], dev["access_key"], dev["secret_key"] + "x", ca_file=dev["ca_file"])
    with wrong, pytest.raises(facet_client.Forbidden, match="signature"):
        wrong.health()


def test_list_is_read_by_page(client: Client) -> None:
    assert client.subjects() == facet_client.SubjectList(subjects=[], total=0)
    a, b, c = (client.register(photo(name)).id for name in (OBAMA, BIDEN, ANOTHER_OBAMA))
    client.unregister(b)
    with pytest.raises(facet_client.NotFound):
        client.unregister(b)
    assert [(e.id, e.status) for e in client.all_subjects()] == [(a, "A"), (c, "A"), (b, "D")]
    window = client.subjects(1, 1, "desc")
    assert [e.id for e in window.subjects] == [c] and window.total == 3 and window.next is not None
    last = client.subjects(after=window.next)
    assert [e.id for e in last.subjects] == [a] and last.next is None
    with pytest.raises(facet_client.InvalidRequest, match="cursor"):
        client.subjects(after="A" * 48)
    assert abs(window.subjects[0].last_updated.timestamp() - time.time()) < 3600


def test_galleries_and_applications_are_managed(tenant: Client) -> None:
    g = tenant.create_gallery("python portal", 5, description="door")
    with pytest.raises(facet_client.Duplicate, match=g.api_key):
        tenant.create_gallery("python portal", 5)
    made = tenant.create_application(
        g.id, "door", face_minimum_quality_score=0.6, verify_threshold=8000, multiple_faces="dominant"
    )
    assert tenant.application(made.id) == made and made.verify_threshold == 8000
    assert ApplicationEntry(id=made.id, name="door", api_key=made.api_key) in tenant.applications()
    assert g.id in [x.id for x in tenant.galleries()]
    subject = tenant.with_api_key(made.api_key).register(photo(OBAMA)).id
    assert tenant.gallery(g.id).count == 1 and len(tenant.gallery(g.id).applications) == 2
    tenant.with_api_key(g.api_key).unregister(subject)
    with pytest.raises(facet_client.NotFound):
        tenant.gallery("no such")


def test_version_1(client: Client) -> None:
    v1 = client.v1
    made = v1.register(photo(OBAMA))
    (found,) = v1.search(photo(ANOTHER_OBAMA)).candidates
    assert made.event_id == "" and found.id == made.id and found.events == []
    assert v1.verify(made.id, photo(ANOTHER_OBAMA)) == found.score
    with pytest.raises(facet_client.NotVerified):
        v1.verify(made.id, photo(BIDEN))
    assert len(v1.extract(photo(THREE_PEOPLE))) == 3
    with pytest.raises(facet_client.NotFound):
        v1.extract(photo(ROCKET))
    v1.unregister(made.id)


def test_writes_continue_after_node_kill(client: Client, dev: dict[str, Any]) -> None:
    victim, image = dev["nodes"][1], photo(OBAMA)
    made = set()
    for i in range(8):
        if i == 2:
            os.kill(victim["pid"], signal.SIGKILL)
        made.add(client.register(image).id)
    again = subprocess.Popen(
        victim["cmd"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert {e.id for e in client.all_subjects()} == made and len(made) == 8
        one = Client([victim["url"]], dev["access_key"], dev["secret_key"], ca_file=dev["ca_file"], tries=100)
        with one:
            one.health()  # it serves again
    finally:
        again.terminate()
        again.wait(60)


def test_updates(client: Client) -> None:
    with pytest.raises(facet_client.Refusal) as e:
        client.update("nobody", photo(OBAMA))
    assert isinstance(e.value, facet_client.NotFound)
    made = client.register(photo(BIDEN))
    updated = client.update(made.id, photo(OBAMA))
    assert (updated.id, updated.event_id) == (made.id, made.event_id)
    with pytest.raises(facet_client.NotVerified):
        client.verify_subject(made.id, photo(BIDEN))
    assert client.v1.update(made.id, photo(BIDEN)).id == made.id
    client.verify_subject(made.id, photo(BIDEN))


def test_events(client: Client) -> None:
    with pytest.raises(facet_client.Refusal) as e:
        client.events("nobody")
    assert isinstance(e.value, facet_client.NotFound)
    made = client.register(photo(OBAMA))
    second = client.register_event(made.id, photo(ANOTHER_OBAMA))
    assert set(client.events(made.id)) == {made.event_id, second.event_id}
    assert client.update_event(made.id, second.event_id, photo(BIDEN)).event_id == second.event_id
    client.unregister_event(made.id, second.event_id)
    with pytest.raises(facet_client.NotFound):
        client.unregister_event(made.id, second.event_id)
    client.unregister_event(made.id, made.event_id)  # its last one
    with pytest.raises(facet_client.NotFound):
        client.events(made.id)


def test_expiry(tenant: Client) -> None:
    gallery = tenant.create_gallery("expiry", 10)
    client = tenant.with_api_key(gallery.api_key)
    at = datetime(2199, 1, 31, 12, tzinfo=timezone.utc)
    made = client.register(photo(OBAMA), expires=at)
    would_go = client.expiring(at + timedelta(milliseconds=1))
    assert (would_go.total, [(e.id, e.expires) for e in would_go.subjects]) == (1, [(made.id, at)])
    assert client.list_events(made.id) == [facet_client.Event(id=made.event_id, expires=at)]
    event = client.register_event(made.id, photo(ANOTHER_OBAMA), expires=at)
    client.update_event(made.id, event.event_id, photo(ANOTHER_OBAMA), expires=at - timedelta(days=1))
    assert [e.expires for e in client.list_events(made.id)] == [at, at - timedelta(days=1)]
    client.unregister_event(made.id, event.event_id)
    client.update(made.id, photo(OBAMA), expires="")
    assert client.expiring(at + timedelta(milliseconds=1)).subjects == []
    assert tenant.update_gallery(gallery.id, retention_days=30).retention_days == 30
    entry = client.expiring(datetime.now(timezone.utc) + timedelta(days=31), length=1).subjects[0]
    assert entry.expires == entry.last_updated + timedelta(days=30)
    with pytest.raises(facet_client.InvalidRequest):
        client.register(photo(BIDEN), expires=datetime(2020, 1, 31, tzinfo=timezone.utc))


def test_tags(client: Client) -> None:
    names = ["night shift", "a/b", "100%25", "für+alle", "?&=#"]
    for name in names:
        client.create_tag(name)
    with pytest.raises(facet_client.Duplicate):
        client.create_tag("a/b")
    assert client.tags() == names
    made = client.register(photo(OBAMA), ["a/b", "100%25"])
    client.rename_tag("a/b", "b/a")
    for tag, want in {"b/a": [made.id], "100%25": [made.id], "?&=#": []}.items():
        assert [c.id for c in client.search(photo(OBAMA), tags=[tag]).candidates] == want
    client.delete_tag("b/a")
    with pytest.raises(facet_client.NotFound):
        client.delete_tag("b/a")
    with pytest.raises(facet_client.NotFound):
        client.rename_tag("b/a", "x")
    with pytest.raises(facet_client.UnknownTag):
        client.search(photo(OBAMA), tags=["b/a"])


def test_bulk_registration(client: Client, dev: dict[str, Any]) -> None:
    with pytest.raises(facet_client.Refusal) as e:
        client.bulk_progress("no such batch")
    assert isinstance(e.value, facet_client.NotFound)
    for name in (OBAMA, ROCKET):
        (Path(dev["bucket_dir"]) / Path(name).name).write_bytes(photo(name))
    batch = client.bulk_register([BulkItem(n) for n in ("obama.jpg", "rocket.jpg", "missing.jpg")])
    late = time.monotonic() + 60
    while True:
        records = {r.filename: r for r in client.bulk_records(batch)}
        if len(records) == 3 and all(r.status == "Processed" for r in records.values()):
            break
        assert time.monotonic() < late, records
        time.sleep(0.2)
    assert {n: r.register_status for n, r in records.items()} == {
        "obama.jpg": "Success",
        "rocket.jpg": "Failed",
        "missing.jpg": "Failed",
    }
    assert records["obama.jpg"].attributes is not None and records["missing.jpg"].attributes is None
    assert [e.id for e in client.all_subjects()] == [records["obama.jpg"].subject_id]


def test_galleries_are_changed_and_deleted(tenant: Client) -> None:
    with pytest.raises(facet_client.Refusal) as e:
        tenant.update_gallery("no-such-gallery", size=20)
    assert isinstance(e.value, facet_client.NotFound)
    g = tenant.create_gallery("python changes", 10)
    changed = tenant.update_gallery(g.id, size=20, description="larger")
    assert (changed.size, changed.description, changed.name) == (20, "larger", g.name)
    with pytest.raises(facet_client.InvalidRequest):
        tenant.update_gallery(g.id, size=19)
    a = tenant.create_application(g.id, "door")
    assert tenant.update_application(a.id, verify_threshold=9000).verify_threshold == 9000
    with pytest.raises(facet_client.OtherSettings):
        tenant.update_application(a.id, face_minimum_quality_score=0.6, if_match=a.etag)
    seen = tenant.application(a.id)
    assert tenant.update_application(a.id, face_minimum_quality_score=0.6, if_match=seen.etag).verify_threshold == 9000
    with pytest.raises(facet_client.OtherSettings):
        tenant.update_gallery(g.id, size=30, if_match=g.etag)
    assert tenant.update_gallery(g.id, size=30, if_match=changed.etag).etag == tenant.gallery(g.id).etag
    tenant.delete_application(a.id)
    refused_soon(facet_client.Forbidden, tenant.with_api_key(a.api_key).subjects)
    tenant.delete_gallery(g.id)
    for _ in range(6):  # on every node, and at once
        with pytest.raises(facet_client.Forbidden):
            tenant.with_api_key(g.api_key).subjects()
    refused_soon(facet_client.NotFound, lambda: tenant.gallery(g.id))


def refused_soon(kind: type[facet_client.Refusal], call: Callable[[], object]) -> None:
    """Waits until all nodes refuse call. Each learns of a change on its own."""
    late, row = time.monotonic() + 5, 0
    while row < 6:
        try:
            call()
        except kind:
            row += 1
            continue
        assert time.monotonic() < late, f"no {kind.__name__}"
        row = 0
        time.sleep(0.01)


def test_external_ids(client: Client) -> None:
    made = client.register(photo(OBAMA), external_id="staff/ü 1", user_data={"shift": 2})
    with pytest.raises(facet_client.Duplicate, match=made.id):
        client.register(photo(BIDEN), external_id="staff/ü 1")
    (entry,) = client.subjects_with("staff/ü 1").subjects
    assert (entry.id, entry.external_id, entry.user_data) == (made.id, "staff/ü 1", {"shift": 2})
    subject = client.subject(made.id)
    assert (subject.external_id, subject.user_data, len(subject.events)) == ("staff/ü 1", {"shift": 2}, 1)
    named = facet_client.external("staff/ü 1")
    verified = client.verify(named, photo(ANOTHER_OBAMA))
    (found,) = client.search(photo(ANOTHER_OBAMA)).candidates
    assert verified.external_id == found.external_id == "staff/ü 1" and verified.score == found.score
    client.update(named, photo(OBAMA), external_id="", user_data={})
    assert client.subjects_with("staff/ü 1").subjects == []
    (entry,) = client.subjects(length=1, order="desc").subjects
    assert (entry.id, entry.external_id, entry.user_data) == (made.id, "", None)
    with pytest.raises(facet_client.NotFound):
        client.unregister(named)


def test_purpose_is_recorded(tenant: Client, dev: dict[str, Any]) -> None:
    general, special = "python: entry of  staff", "python ~case 4711, " + "x" * 237
    with Client(
        dev["base_urls"], dev["access_key"], dev["secret_key"], ca_file=dev["ca_file"], purpose=f" {general} "
    ) as client:
        client.galleries()
        client.with_api_key("k").with_purpose(special).galleries()
        client.with_purpose(None).galleries()
    late = time.monotonic() + 10
    recorded: list[str] = []
    while len(recorded) < 2 and time.monotonic() < late:
        page = tenant.audit_records(operation="GET /api/galleries", kind="request", length=200)
        recorded = sorted(r.purpose for r in page.records if r.purpose.startswith("python"))
    assert recorded == [special, general]


def test_purpose_of_no_header_is_refused(tenant: Client) -> None:
    wrong = {"x" * 257: "257 bytes", "a\nb": "\\\\n", "a\tb": "\\\\t", "\x7f": "x7f", "Prüfung": "ü"}
    for purpose, want in wrong.items():
        with pytest.raises(ValueError, match=want):
            tenant.with_purpose(purpose)
        with pytest.raises(ValueError, match=want):
            Client(["https://n1"], "a", "s", purpose=purpose)
