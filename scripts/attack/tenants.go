package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// operation is an operation of the interface. Words in braces in target and body are
// ids and names of the victim.
type operation struct {
	method, target, body string
	right                byte // 'r' read, 'w' write, 'm' manage
	keyed                bool // it needs an API key
}

// operations lists every operation that needs a signature, in both versions.
var operations = []operation{
	{"GET", "/v1.1/subjects?start=0&length=100", "", 'r', true},
	{"POST", "/v1.1/subjects", `{"face":"{photo}"}`, 'w', true},
	{"PUT", "/v1.1/subjects/{subject}", `{"face":"{photo}"}`, 'w', true},
	{"DELETE", "/v1.1/subjects/{subject}", "", 'w', true},
	{"GET", "/v1.1/subjects/{subject}/events", "", 'r', true},
	{"POST", "/v1.1/subjects/{subject}/events", `{"face":"{photo}"}`, 'w', true},
	{"PUT", "/v1.1/subjects/{subject}/events/{event}", `{"face":"{photo}"}`, 'w', true},
	{"DELETE", "/v1.1/subjects/{subject}/events/{event}", "", 'w', true},
	{"GET", "/v1.1/tags", "", 'r', true},
	{"POST", "/v1.1/tags/{new}", "", 'w', true},
	{"PUT", "/v1.1/tags/{tag}", `{"newName":"{new}"}`, 'w', true},
	{"DELETE", "/v1.1/tags/{tag}", "", 'w', true},
	{"POST", "/v1.1/jobs/bulkregister", `{"registrations":[{"filename":"{file}"}]}`, 'w', true},
	{"GET", "/v1.1/jobs/bulkregister/{batch}", "", 'r', true},
	{"GET", "/v1.1/jobs/bulkregister/{batch}/", "", 'r', true},
	{"GET", "/v1.1/jobs/bulkregister/{batch}/{cursor}", "", 'r', true},
	{"GET", "/v1.1/jobs/bulkregister/{batch}/?pagingId={cursor}", "", 'r', true},
	{"POST", "/v1.1/face/verify", `{"id":"{subject}","probe":"{photo}"}`, 'r', true},
	{"POST", "/v1.1/face/search", `{"probe":"{photo}"}`, 'r', true},
	{"POST", "/v1.1/face/search", `{"probe":"{photo}","tags":["{tag}"]}`, 'r', true},
	{"POST", "/v1/subjects", `{"face":"{photo}"}`, 'w', true},
	{"PUT", "/v1/subjects/{subject}", `{"face":"{photo}"}`, 'w', true},
	{"DELETE", "/v1/subjects/{subject}", "", 'w', true},
	{"POST", "/v1/face/verify", `{"id":"{subject}","probe":"{photo}"}`, 'r', true},
	{"POST", "/v1/face/search", `{"probe":"{photo}"}`, 'r', true},
	{"POST", "/v1/face/extract", `{"faces":"{photo}"}`, 'r', true},
	{"GET", "/api/galleries", "", 'm', false},
	{"POST", "/api/galleries", `{"name":"{new}","description":"","faceMinimumQualityScore":0.5,"size":10}`, 'm', false},
	{"GET", "/api/galleries/{gallery}", "", 'm', false},
	{"PATCH", "/api/galleries/{gallery}", `{"name":"{new}","size":2000}`, 'm', false},
	{"DELETE", "/api/galleries/{gallery}", "", 'm', false},
	{"GET", "/api/applications", "", 'm', false},
	{"POST", "/api/applications", `{"name":"{new}","galleryId":"{gallery}","faceMinimumQualityScore":0.5}`, 'm', false},
	{"GET", "/api/applications/{application}", "", 'm', false},
	{"PATCH", "/api/applications/{application}", `{"name":"{new}","verifyThreshold":1}`, 'm', false},
	{"DELETE", "/api/applications/{application}", "", 'm', false},
}

// crossing tries operations without the right to them.
type crossing struct{ *attack }

// foreign reports whether the operation names something of the victim.
func (o operation) foreign() bool {
	return slices.ContainsFunc([]string{"{subject}", "{tag}", "{batch}", "{gallery}", "{application}"}, func(name string) bool {
		return strings.Contains(o.target+o.body, name)
	})
}

// fill puts the victim's ids and names into text.
func (a crossing) fill(text string, n int) string {
	v := a.victim
	return strings.NewReplacer(
		"{subject}", v.subjects[0].ID, "{event}", v.subjects[0].EventID, "{gallery}", v.gallery.id, "{application}", v.sibling.id,
		"{tag}", v.tag, "{batch}", v.batch, "{cursor}", "AAAAAAAAAAAAAAAA", "{photo}", encoded(a.photos[another]), "{file}", "canary-file.jpg",
		"{new}", fmt.Sprint("planted-", n),
	).Replace(text)
}

// trespass is one try: who signs, with which API key.
type trespass struct {
	what string
	who  credentials
	key  string
}

// trespasses returns the ways to try an operation that must not succeed.
func (a crossing) trespasses(o operation) (list []trespass) {
	v, f := a.victim, a.thief
	if o.keyed {
		for role, who := range map[string]credentials{"admin": f.admin, "biometric": f.biometric, "read-only": f.only} {
			list = append(list, trespass{"the victim's API key, the thief's " + role + " key", who, v.gallery.apiKey})
		}
		list = append(list, trespass{"no API key", v.admin, ""}, trespass{"a made-up API key", v.admin, strings.Repeat("k", 40)})
	}
	if o.foreign() {
		list = append(list, trespass{"the thief's own keys", f.admin, f.gallery.apiKey})
		if o.keyed { // the ids and names belong to the first gallery
			list = append(list, trespass{"another gallery of the tenant", v.admin, v.second.apiKey})
		}
	}
	if o.right != 'r' {
		list = append(list, trespass{"the victim's read-only key", v.only, v.gallery.apiKey})
	}
	if o.right == 'm' {
		list = append(list, trespass{"the victim's biometric key", v.biometric, v.gallery.apiKey})
	}
	return append(list,
		trespass{"the thief's access key, the victim's secret", credentialsOf(f.admin.Signer.AccessKey, v.admin.Signer.SecretKey), v.gallery.apiKey},
		trespass{"the victim's access key, the thief's secret", credentialsOf(v.admin.Signer.AccessKey, f.admin.Signer.SecretKey), v.gallery.apiKey})
}

// crossTenants tries every operation without the right to it.
func (a crossing) crossTenants(c *tally) error {
	before, err := a.state()
	if err != nil {
		return err
	}
	n := 0
	for _, o := range operations {
		for _, w := range a.trespasses(o) {
			n++
			body := any(nil)
			if o.body != "" {
				body = a.fill(o.body, n)
			}
			target := a.fill(o.target, n)
			w.who.APIKey = w.key
			a.expectRefusal(c, fmt.Sprintf("%s %s with %s", o.method, o.target, w.what), n%nodes, a.sign(n%nodes, w.who, o.method, target, body))
		}
	}
	a.ownLists(c)
	if err := a.foreignFiles(c); err != nil {
		return err
	}
	after, err := a.state()
	if err == nil && before != after {
		c.got("the victim's data changed:\n%s\n%s", before, after)
	}
	return err
}

// expectRefusal sends a request that must be refused and reveal nothing of the victim.
func (a crossing) expectRefusal(c *tally, what string, node int, q request) {
	c.try()
	got, err := a.send(node, address{1, 1}, q)
	switch {
	case err != nil:
		c.got("%s: %v", what, err)
	case !slices.Contains([]int{400, 403, 404, 429}, got.status):
		c.got("%s: %s", what, got)
	}
	a.expectNothing(c, what, q, got)
}

// expectNothing checks that an answer shows nothing of the victim but what the request
// itself names.
func (a crossing) expectNothing(c *tally, what string, q request, got answer) {
	v := a.victim
	marks := []string{
		v.name, v.id.String(), v.gallery.id, v.gallery.name, v.gallery.apiKey, v.second.id, v.second.name, v.second.apiKey,
		v.sibling.id, v.sibling.apiKey, v.tag, v.batch, v.admin.Signer.AccessKey, v.biometric.Signer.AccessKey, v.only.Signer.AccessKey,
	}
	for _, s := range v.subjects {
		marks = append(marks, s.ID, s.EventID)
	}
	sent := string(q.raw())
	for _, m := range marks {
		if strings.Contains(got.body, m) && !strings.Contains(sent, m) {
			c.got("%s: the answer shows %s: %s", what, m, got)
		}
	}
}

// ownLists makes the requests that the thief may make: their answers must show nothing of
// the victim.
func (a crossing) ownLists(c *tally) {
	f := a.thief
	for i, o := range []operation{
		{method: "GET", target: "/v1.1/subjects?start=0&length=1000"},
		{method: "GET", target: "/v1.1/tags"},
		{method: "GET", target: "/api/galleries"},
		{method: "GET", target: "/api/applications"},
		{method: "GET", target: "/openapi.json"},
		{method: "POST", target: "/v1.1/face/search", body: `{"probe":"{photo}","threshold":0,"limit":50}`},
		{method: "POST", target: "/v1/face/search", body: `{"probe":"{photo}"}`},
		{method: "POST", target: "/api/galleries", body: `{"name":"` + a.victim.gallery.name + `","description":"","faceMinimumQualityScore":0.5,"size":10}`},
	} {
		body := any(nil)
		if o.body != "" {
			body = a.fill(o.body, 0)
		}
		for node := range nodes {
			c.try()
			q := a.sign(node, f.admin, o.method, o.target, body, apiKey(f.gallery.apiKey))
			got, err := a.send(node, address{1, byte(i)}, q)
			if err != nil || got.status >= 500 {
				c.got("%s %s: %s, %v", o.method, o.target, got, err)
			}
			a.expectNothing(c, o.method+" "+o.target, q, got)
		}
	}
}

// foreignFiles tries to register a photo out of the victim's folder of the object store.
func (a crossing) foreignFiles(c *tally) error {
	root := filepath.Dir(a.info.BucketDir)
	theirs, own := filepath.Join(root, a.victim.id.String()), filepath.Join(root, a.thief.id.String())
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(theirs, "p.jpg"), a.photos[another], 0o600); err != nil {
		return err
	}
	up := "../" + a.victim.id.String() + "/p.jpg"
	var items []any
	for _, name := range []string{
		up, "x/../" + up, "./" + up, "/" + up, strings.ReplaceAll(up, "/", `\`), strings.ReplaceAll(up, "..", "%2e%2e"), strings.ReplaceAll(up, "/", "%2f"),
		filepath.Join(theirs, "p.jpg"), "file://" + filepath.Join(theirs, "p.jpg"), "..%c0%af" + a.victim.id.String() + "/p.jpg", "....//" + a.victim.id.String() + "/p.jpg",
		"../" + up, ".../" + up, up + "\x00", up + "?x", "//" + up, "/etc/passwd", "../../n1/data/node.json",
	} {
		items = append(items, map[string]any{"filename": name})
	}
	for i, item := range items { // one bad name refuses a whole job
		c.try()
		q := a.sign(i%nodes, a.thief.biometric, http.MethodPost, "/v1.1/jobs/bulkregister", map[string]any{"registrations": []any{item}}, apiKey(a.thief.gallery.apiKey))
		got, err := a.send(i%nodes, address{1, 3}, q)
		if err != nil || got.status >= 500 {
			c.got("bulk registration of %v: %s, %v", item, got, err)
		}
	}
	// Without an own file that is registered, no foreign one would prove nothing.
	if err := os.WriteFile(filepath.Join(own, "own.jpg"), a.photos[portraits[1]], 0o600); err != nil {
		return err
	}
	key := a.thief.gallery.apiKey
	if err := a.must(0, a.thief.biometric, http.MethodPost, "/v1.1/jobs/bulkregister", key, map[string]any{
		"registrations": []any{map[string]any{"filename": "own.jpg"}},
	}, nil); err != nil {
		return err
	}
	list := func() (answer, error) {
		return a.send(0, address{1, 3}, a.sign(0, a.thief.only, http.MethodGet, "/v1.1/subjects", nil, apiKey(key)))
	}
	for late := time.Now().Add(settleTime); ; time.Sleep(settlePause) {
		got, err := list()
		if err == nil && got.status == http.StatusOK {
			break
		}
		if err != nil || time.Now().After(late) {
			return fmt.Errorf("a bulk registration of an own file has no effect: %s, %w", got, err)
		}
	}
	time.Sleep(3 * time.Second) // the other jobs end
	got, err := list()
	var l struct{ Subjects []subject }
	if err = errors.Join(err, json.Unmarshal([]byte(got.body), &l)); err != nil {
		return fmt.Errorf("list: %s, %w", got, err)
	}
	if len(l.Subjects) != 1 {
		c.got("a bulk registration of the thief took a foreign file: %s", got)
	}
	return nil
}

// state returns everything that the victim's requests show of its data.
func (a crossing) state() (string, error) {
	v := a.victim
	var all strings.Builder
	for _, target := range []string{
		"/api/galleries", "/api/applications", "/api/galleries/" + v.gallery.id, "/api/applications/" + v.sibling.id, "/v1.1/subjects?start=0&length=1000",
		"/v1.1/tags", "/v1.1/subjects/" + v.subjects[0].ID + "/events", "/v1.1/subjects/" + v.subjects[1].ID + "/events",
	} {
		got, err := a.send(0, address{0, 1}, a.sign(0, v.admin, http.MethodGet, target, nil, apiKey(v.gallery.apiKey)))
		if err != nil || got.status != http.StatusOK {
			return "", fmt.Errorf("%s: %s, %w", target, got, err)
		}
		fmt.Fprintf(&all, "%s %s\n", target, got.body)
	}
	return all.String(), nil
}
