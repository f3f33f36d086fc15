"""Sends signed requests as botocore does; prints "STATUS BODY" for each.

usage: botocore_client.py CA_FILE ACCESS_KEY SECRET_KEY REGION SERVICE < lines
Each line of the input is JSON: method, url, headers (object), body (string).
"""

import json
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

ca_file, access_key, secret_key, region, service = sys.argv[1:]
signer = SigV4Auth(Credentials(access_key, secret_key), service, region)
session = URLLib3Session(verify=ca_file)
for line in sys.stdin:
    call = json.loads(line)
    request = AWSRequest(
        method=call["method"], url=call["url"], headers=call["headers"], data=call["body"].encode()
    )
    signer.add_auth(request)
    answer = session.send(request.prepare())
    print(answer.status_code, answer.text.replace("\n", " "))
