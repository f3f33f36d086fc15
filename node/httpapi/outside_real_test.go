package httpapi_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"facet/node/nodetest"
	"facet/router"
)

// curl makes the signatures itself: its side runs no code of ours.
func TestCurlRegistersAndSearches(t *testing.T) {
	t.Parallel()
	s := start(t, nodetest.Options{Nodes: 1})
	own := s.tenant(t, "curl", 0)
	keys := map[string]router.AccessKey{"biometric": own.key, "admin": own.adminKey, "stranger": {ID: "stranger", Secret: "none"}}
	f := func(spelling, as, target, body, want string, args ...string) {
		t.Helper()
		all := append([]string{
			"--silent", "--show-error", "--cacert", s.Roots, "--aws-sigv4", spelling + ":ap-southeast-2:execute-api",
			"--user", keys[as].ID + ":" + keys[as].Secret, "--write-out", " %{http_code}", own.base + target,
		}, args...)
		if body != "" {
			all = append(all, "--data-binary", "@-", "-H", "content-type: application/json")
		}
		command := exec.Command("curl", all...)
		command.Stdin = strings.NewReader(body)
		out, err := command.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = errors.New(string(exit.Stderr))
			}
			t.Fatalf("curl %s: %v", target, err)
		}
		if !strings.HasPrefix(string(out), want[:len(want)-4]) || !strings.HasSuffix(string(out), want[len(want)-4:]) {
			t.Errorf("%s %s: got %s, want %s", spelling, target, out, want)
		}
	}
	key := "x-api-key: " + own.gallery(t, "app", 2).APIKey
	alice := encoded(t, "32bit.png")
	f("cloud:cloud", "admin", "/api/galleries", `{"name":"another","faceMinimumQualityScore":0.5,"size":2}`, `{"id":" 200`)
	// More than 1 MiB: curl asks with Expect: 100-continue before it sends it.
	f("aws:cloud", "biometric", "/v1.1/subjects", `{"face":"`+alice+`"}`, `{"id":" 201`, "-H", key)
	f("cloud:cloud", "biometric", "/v1.1/face/search", `{"probe":"`+alice+`","limit":1}`, `{"candidates":[{"id":" 200`, "-H", key)
	f("aws:amz", "biometric", "/v1.1/subjects?start=0&length=5&dir=desc", "", `{"subjects":[{"id":" 200`, "-H", key)
	f("aws:cloud", "biometric", "/v1.1/tags/a%2Fb%20c+d;%C3%A9", "", " 200", "-H", key, "--request", "POST")
	f("cloud:cloud", "biometric", "/v1.1/tags/a%2Fb%20c+d;%C3%A9", `{"newName":"100%/"}`, " 200", "-H", key, "--request", "PUT")
	f("cloud:cloud", "biometric", "/v1.1/tags", "", `["100%/"] 200`, "-H", key)
	f("aws:cloud", "biometric", "/v1.1/subjects", strings.Repeat("A", 20<<20+1), `{"message":"The body is too large."} 413`, "-H", key)
	f("aws:cloud", "stranger", "/v1.1/health", "", `{"message":"The request signature we calculated does not match the signature you provided."} 403`)
	f("aws:cloud", "biometric", "/v1.1/subjects", "", `{"message":"Forbidden"} 403`)
	f("aws:cloud", "biometric", "/v1.1/jobs/bulkregister", `{"registrations":[{"filename":"a"}]}`,
		`{"message":"This service has no object store to register from.","errorCode":1001,"errorType":"InvalidRequest","reason":"NoObjectStore"} 400`, "-H", key)
}
