"""Signs requests with botocore, an outside signer.

Reads a JSON array of {signer, method, url, headers, body, time} from standard
input and writes an array of {target, headers} to standard output. Signers:
  stock      botocore's own SigV4Auth (x-amz-date, AWS4)
  cloud      the same with the date header x-cloud-date
  cloud4     x-cloud-date and the CLOUD4 spelling
  once       stock, with the path encoded once, as for S3
  unsigned   stock, but the body is left out of the signature
  session    stock, with a session token
  presigned  the signature in the query
"""
import datetime
import hashlib
import hmac
import json
import sys
import urllib.parse

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION, SERVICE = "ap-southeast-2", "execute-api"


class Cloud(botocore.auth.SigV4Auth):
    """SigV4Auth with another date header and, in a subclass, another spelling."""

    spelling = "AWS4"

    def scope_parts(self, request):
        return [request.context["timestamp"][:8], self._region_name, self._service_name, self.spelling.lower() + "_request"]

    def credential_scope(self, request):
        return "/".join(self.scope_parts(request))

    def scope(self, request):
        return self.credentials.access_key + "/" + self.credential_scope(request)

    def _modify_request_before_signing(self, request):
        request.headers["X-Cloud-Date"] = request.context["timestamp"]

    def string_to_sign(self, request, canonical_request):
        digest = hashlib.sha256(canonical_request.encode()).hexdigest()
        return "\n".join([self.spelling + "-HMAC-SHA256", request.context["timestamp"], self.credential_scope(request), digest])

    def signature(self, string_to_sign, request):
        key = (self.spelling + self.credentials.secret_key).encode()
        for part in self.scope_parts(request) + [string_to_sign]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key.hex()

    def _inject_signature_to_request(self, request, signature):
        names = self.signed_headers(self.headers_to_sign(request))
        request.headers["Authorization"] = (
            f"{self.spelling}-HMAC-SHA256 Credential={self.scope(request)}, SignedHeaders={names}, Signature={signature}"
        )


class Cloud4(Cloud):
    spelling = "CLOUD4"


class Once(botocore.auth.SigV4Auth):
    """SigV4Auth for a path that is encoded once."""

    def _normalize_url_path(self, path):
        return path


def sign(job):
    at = datetime.datetime.strptime(job["time"], "%Y%m%dT%H%M%SZ")
    botocore.auth.get_current_datetime = lambda *_: at
    token = "session-token" if job["signer"] == "session" else None
    credentials = Credentials(job["access"], job["secret"], token)
    signer = {"cloud": Cloud, "cloud4": Cloud4, "presigned": botocore.auth.SigV4QueryAuth, "once": Once}.get(
        job["signer"], botocore.auth.SigV4Auth)
    request = AWSRequest(job["method"], job["url"], headers=dict(job["headers"]), data=job["body"].encode())
    if job["signer"] == "unsigned":
        request.context["payload_signing_enabled"] = False
    signer(credentials, SERVICE, REGION).add_auth(request)
    prepared = request.prepare()
    url = urllib.parse.urlsplit(prepared.url)
    headers = [["Host", url.netloc]] + [[name, value if isinstance(value, str) else value.decode()]
                                        for name, value in prepared.headers.items()]
    return {"target": url.path + ("?" + url.query if url.query else ""), "headers": headers}


json.dump([sign(job) for job in json.load(sys.stdin)], sys.stdout)
