"""schemathesis makes requests from openapi.json, right ones and wrong ones, and holds
the answers of a real cluster to it: no fault, no status and no body that is not
described."""

import base64
from typing import Any, get_type_hints
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from conftest import ANOTHER_OBAMA, OBAMA, ROCKET, ROOT, photo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from facet_client import ApplicationChange, ApplicationSettings, Client, GalleryChange, GallerySettings
from facet_client._models import camel
from facet_client._sign import Signer

EXAMPLES = 6  # requests for each operation
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

SCHEMA = schemathesis.openapi.from_path(ROOT / "node" / "httpapi" / "openapi" / "openapi.json")
RESULTS: list[Any] = list(SCHEMA.get_all_operations())
OPERATIONS = {op.definition.raw["operationId"]: op for op in (r.ok() for r in RESULTS)}
IMAGES = [None, photo(OBAMA), photo(ANOTHER_OBAMA), photo(ROCKET), b"no image"]


class Target:
    """A gallery of the cluster, and signed requests to it."""

    def __init__(self, client: Client, dev: dict[str, Any]) -> None:
        self.dev = dev
        self.signer = Signer(dev["access_key"], dev["secret_key"], dev["region"], dev["service"])
        self.gallery = client.create_gallery("schemathesis", 30)
        application = client.create_application(self.gallery.id, "schemathesis")
        made = client.with_api_key(self.gallery.api_key).register(photo(OBAMA))
        self.ids = {
            "subjectId": made.id,
            "eventId": made.event_id,
            "galleryId": self.gallery.id,
            "applicationId": application.id,
        }
        self.session = requests.Session()
        self.session.trust_env = False

    def send(self, case: Any) -> requests.Response:
        kwargs = case.as_transport_kwargs(base_url=self.dev["base_urls"][0])
        parts = {k: kwargs.get(k) for k in ("method", "url", "headers", "params", "data", "json", "cookies")}
        request = self.session.prepare_request(requests.Request(**parts))
        body = request.body or b""
        u = urlsplit(request.url or "")
        request.headers.update(
            self.signer.sign(
                case.method.upper(),
                u.netloc,
                u.path,
                u.query,
                {"x-api-key": self.gallery.api_key},
                body.encode() if isinstance(body, str) else body,
            )
        )
        return self.session.send(request, verify=self.dev["ca_file"], allow_redirects=False, timeout=60)


@pytest.fixture(scope="module")
def target(workplace: Any, dev: dict[str, Any]) -> Target:
    with Client.from_dev(workplace / "dev" / "dev.json") as client:
        return Target(client, dev)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_answer_is_described(name: str, target: Target) -> None:
    seen = set()

    @given(data=st.data())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def run(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
        case = data.draw(OPERATIONS[name].as_strategy(mode))
        if isinstance(case.body, dict):
            if "tags" in case.body and data.draw(st.booleans()):
                case.body["tags"] = []
            if "galleryId" in case.body and data.draw(st.booleans()):
                case.body["galleryId"] = target.gallery.id
            for member in ("face", "faces", "probe"):
                image = data.draw(st.sampled_from(IMAGES))
                if image is not None and isinstance(case.body.get(member), str):
                    case.body[member] = base64.b64encode(image).decode()
        for parameter, known in target.ids.items():
            if parameter in case.path_parameters and name != "deleteGallery" and data.draw(st.booleans()):
                case.path_parameters[parameter] = known
        answer = target.send(case)
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    run()
    print(name, sorted(seen))


@pytest.mark.parametrize(
    ("schema", "types", "named"),
    [
        ("GalleryCreate", GallerySettings, {"name", "size", "faceMinimumQualityScore"}),
        ("GalleryUpdate", GalleryChange, set()),
        ("ApplicationCreate", ApplicationSettings, {"name", "galleryId", "faceMinimumQualityScore"}),
        ("ApplicationUpdate", ApplicationChange, set()),
    ],
)
def test_each_setting_has_a_type(schema: str, types: Any, named: set[str]) -> None:
    properties = SCHEMA.raw_schema["components"]["schemas"][schema]["properties"]
    assert {camel(name) for name in get_type_hints(types)} | named == set(properties)


def test_unknown_setting_is_refused() -> None:
    client = Client(["https://127.0.0.1:1"], "AK", "SK")
    with pytest.raises(TypeError, match="no setting retention_day"):
        client.update_gallery("g", retention_day=30)  # type: ignore[call-arg]
