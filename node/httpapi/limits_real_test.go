package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/enginetest"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/httpapi/openapi"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/router"
)

// bound is a bound of a member of a body or of a parameter, as openapi.json names it.
// at is the status of a request with the least or the most, or a text in its answer.
// A request with less or more is 400 InvalidRequest, and beyond is in its message.
type bound struct {
	member      string
	least, most float64 // of a number; for a text its characters, for a list its items
	at, beyond  string
}

// bounds are the bounds of what clients send (interface, §4 and §8; docs/interface.md).
var bounds = append([]bound{
	{"ApplicationCreate.galleryId", 0, 128, "UnknownGallery", "galleryId must be at most 128 characters"},
	{"BulkItem.externalId", 1, 128, "200", "externalId must "},
	{"BulkItem.filename", 1, 1024, "200", "filename "},
	// The last of the registrations has a tag that does not exist: no job is made.
	{"BulkRequest.registrations", 1, 100_000, "UnknownTag", "registrations"},
	{"CheckRequest.externalId", 1, 128, "200", "externalId must "},
	{"CheckRequest.row", 0, 1<<31 - 1, "200", "row must be a whole number from 0 to 2147483647"},
	{"CompareRequest.faces", 1, 1000, "200", "faces must be an array of 1 to 1000 objects"},
	{"DuplicatesRequest.threshold", 7000, 9999, "200", "threshold must be a whole number from 7000 to 9999"},
	{"ExtractRequest.limit", 1, 1<<31 - 1, "200", "limit must be a whole number from 1 to 2147483647"},
	{"GalleryCreate.faceMinimumQualityScore", .45, 1, "200", "faceMinimumQualityScore must be a number from 0.45 to 1"},
	{"IdempotencyKey", 1, 128, "201", "Idempotency-Key must be 1 to 128 characters"},
	{"Length", 1, 1000, "200", "length must be a whole number from 1 to 1000"},
	{"MatchesRequest.length", 1, 200, "200", "length must be a whole number from 1 to 200"},
	{"MatchesRequest.threshold", 0, 9999, "200", "threshold must be a whole number from 0 to 9999"},
	{"RegisterRequest.externalId", 0, 128, "200", "externalId must be at most 128 characters"},
	{"SearchProbesRequest.limit", 1, 50, "200", "limit must be a whole number from 1 to 50"},
	{"SearchProbesRequest.tags", 0, 64, `"candidates":`, "A gallery has at most 64 tags"},
	{"SearchProbesRequest.threshold", 0, 9999, "200", "threshold must be a whole number from 0 to 9999"},
	{"SearchRequest.limit", 1, 50, "200", "limit must be a whole number from 1 to 50"},
	{"SearchRequest.tags", 0, 64, `"candidates":`, "A gallery has at most 64 tags"},
	{"SearchRequest.threshold", 0, 9999, "200", "threshold must be a whole number from 0 to 9999"},
	{"SearchRequestV1.limit", 1, 50, "200", "limit must be a whole number from 1 to 50"},
	{"SearchRequestV1.threshold", 0, 9999, "200", "threshold must be a whole number from 0 to 9999"},
	{"Start", 0, 1<<31 - 1, `"total":`, "start must be a whole number from 0 to 2147483647"},
	{"TagName", 1, 128, "200", "name must "},
	{"Tags", 0, 64, "201", "A gallery has at most 64 tags"},
	{"VerifySubjectProbesRequest.id", 1, 128, "404", "id must "},
	{"VerifySubjectRequest.id", 1, 128, "404", "id must "},
	{"VerifyRequestV1.id", 1, 128, "404", "id must "},
}, slices.Concat(boundsOf[settings.Gallery]("GalleryCreate"), boundsOf[settings.Gallery]("GalleryUpdate"),
	boundsOf[settings.Application]("ApplicationCreate"), boundsOf[settings.Application]("ApplicationUpdate"))...)

// boundsOf returns the bounds of the settings of T in a schema. Those of the interface are these.
func boundsOf[T any](schema string) (list []bound) {
	core := map[string]float64{"name": 256, "description": 4096, "size": 1<<31 - 1, "faceMinimumQualityScore": 1}
	for _, f := range settings.Fields[T]() {
		if f.Core {
			f.Max = core[f.Name]
		}
		b := bound{schema + "." + f.Name, f.Min, f.Max, "200", ""}
		switch {
		case f.Max == 0 || f.Choices != nil || elsewhere[b.member] != "":
			continue
		case f.Check != nil && f.Required:
			b.least, b.beyond = 1, f.Name+" must "
		case f.Check != nil:
			b.beyond = fmt.Sprintf("%s must be at most %.0f characters", f.Name, f.Max)
		default:
			b.beyond = fmt.Sprintf("number from %v to %.0f", f.Min, f.Max)
		}
		list = append(list, b)
	}
	return list
}

// elsewhere names what shows the other bounds of openapi.json.
var elsewhere = map[string]string{
	"After": "TestTranscripts", "PairsAfter": "TestTranscripts", "PairsLength": "TestTranscripts", "MatchesRequest.after": "TestTranscripts", "ApplicationID": "idsInPaths", "BatchID": "idsInPaths", "EventID": "idsInPaths", "OtherID": "TestTranscripts",
	"GalleryID": "idsInPaths", "PagingID": "idsInPaths", "SubjectID": "idsInPaths", "CheckID": "idsInPaths", "CaseID": "TestTranscripts", "CasesAfter": "TestTranscripts", "CasesLength": "TestTranscripts",
	"GalleryCreate.photoLink": "TestTranscripts", "GalleryUpdate.photoLink": "TestTranscripts",
}

// schema is the part of a schema that bounds its values.
type schema struct {
	Minimum, Maximum, MinLength, MaxLength, MinItems, MaxItems *float64
	Properties                                                 map[string]json.RawMessage
}

// bounds returns the least and the most. ok is false when there are none.
func (s schema) bounds() (b [2]float64, ok bool) {
	for i, values := range [2][]*float64{{s.Minimum, s.MinLength, s.MinItems}, {s.Maximum, s.MaxLength, s.MaxItems}} {
		for _, v := range values {
			if v != nil {
				b[i], ok = *v, true
			}
		}
	}
	return b, ok
}

// documented returns the bounds of what clients send in openapi.json.
func documented(t *testing.T) map[string][2]float64 {
	t.Helper()
	var document struct {
		Components struct {
			Schemas    map[string]schema
			Parameters map[string]struct{ Schema schema }
		}
	}
	must.Do(t, json.Unmarshal(openapi.Document(), &document))
	all := map[string][2]float64{}
	add := func(name string, s schema) {
		if b, ok := s.bounds(); ok {
			all[name] = b
		}
	}
	for name, p := range document.Components.Parameters {
		add(name, p.Schema)
	}
	sent := regexp.MustCompile(`Request(V1)?$|Create$|Update$|^BulkItem$|^TagName$|^Tags$`)
	for name, s := range document.Components.Schemas {
		if !sent.MatchString(name) {
			continue
		}
		add(name, s)
		for member, raw := range s.Properties {
			var p schema
			must.Do(t, json.Unmarshal(raw, &p))
			add(name+"."+member, p)
		}
	}
	return all
}

func TestEveryDocumentedBoundHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string][2]float64{}
	for _, b := range bounds {
		rows[b.member] = [2]float64{b.least, b.most}
	}
	all := documented(t)
	maps.DeleteFunc(all, func(member string, _ [2]float64) bool { return elsewhere[member] != "" })
	if diff := cmp.Diff(all, rows); diff != "" {
		t.Errorf("the rows differ from openapi.json (-document +rows):\n%s", diff)
	}
}

// The numbers of the interface, at their edges and beyond, on a node with the face
// engine and an object store. The requests for many faces use HashExtractor's.
func TestServiceKeepsEachLimit(t *testing.T) {
	t.Parallel()
	s := start(t, nodetest.Options{Nodes: 1, Bucket: "file://" + t.TempDir()})
	s.waitLevel(t)
	for name, f := range map[string]func(*testing.T, tenant){
		"bounds of members": everyBound, "ids in paths": idsInPaths, "64 tags of a gallery": tags, "10 and 20 faces of an image": faces,
		"10 and 50 candidates of a search": searches, "7000 by default, 9999": thresholds, "quality": quality, "a second face": secondFace,
		"20 MiB": bodies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, s.tenant(t, t.Name(), 0))
		})
	}
}

// request is a request with one member to vary.
type request struct {
	client         *nodetest.Client
	method, target string
	body           map[string]any
}

// with sends the request with this member.
func (r request) with(t *testing.T, base, member string, value any) nodetest.Answer {
	t.Helper()
	body := map[string]any{member: value}
	for name, v := range r.body {
		if name != member {
			body[name] = v
		}
	}
	return r.client.Call(t, base, r.method, r.target, body)
}

// person is the body of a registration, and its image.
func person(name string) map[string]any {
	return map[string]any{"face": nodetest.Image("person " + name)}
}

// post demands a status and decodes the answer into v, unless v is nil.
func post(t *testing.T, c *nodetest.Client, base, target string, body any, status int, v any) {
	t.Helper()
	a := c.Call(t, base, http.MethodPost, target, body)
	if a.Status != status {
		t.Fatalf("POST %s: %d %.300s, want %d", target, a.Status, a.Body, status)
	}
	if v != nil {
		a.Decode(t, v)
	}
}

func everyBound(t *testing.T, n tenant) {
	c, tagless := n.gallery(t, "g", 100), n.gallery(t, "tags", 1)
	var subject, small, app, check struct{ ID string }
	post(t, c, n.base, "/v1.1/face/checks", nil, http.StatusCreated, &check)
	post(t, c, n.base, "/v1.1/subjects", person("a"), http.StatusCreated, &subject)
	post(t, n.admin, n.base, "/api/galleries", map[string]any{"name": "small", "faceMinimumQualityScore": .5, "size": 1}, http.StatusOK, &small)
	newApp := map[string]any{"name": "a", "faceMinimumQualityScore": .5, "galleryId": small.ID}
	post(t, n.admin, n.base, "/api/applications", newApp, http.StatusOK, &app)
	names := make([]string, 65)
	for i := range names {
		names[i] = fmt.Sprint("tag", i)
		if i < 64 {
			post(t, c, n.base, "/v1.1/tags/"+names[i], nil, http.StatusOK, nil)
		}
	}
	var compared struct{ Faces []struct{ Token string } }
	post(t, c, n.base, "/v1.1/face/compare", map[string]any{"faces": []any{person("a")}}, http.StatusOK, &compared)
	manager, galleries := *n.admin, 0
	manager.APIKey = c.APIKey
	image, probe := nodetest.Image("person a"), map[string]any{"probe": nodetest.Image("person a")}
	search := map[string]any{"probe": image, "threshold": 0}
	bodies := map[string]request{
		"ApplicationCreate":          {n.admin, http.MethodPost, "/api/applications", newApp},
		"ApplicationUpdate":          {n.admin, http.MethodPatch, "/api/applications/" + app.ID, nil},
		"GalleryUpdate":              {n.admin, http.MethodPatch, "/api/galleries/" + small.ID, nil},
		"RegisterRequest":            {c, http.MethodPut, "/v1.1/subjects/" + subject.ID, person("a")},
		"CheckRequest":               {c, http.MethodPost, "/v1.1/face/checks/" + check.ID, map[string]any{"row": 1, "face": image}},
		"ExtractRequest":             {c, http.MethodPost, "/v1.1/face/extract", map[string]any{"faces": image}},
		"SearchRequest":              {c, http.MethodPost, "/v1.1/face/search", search},
		"SearchProbesRequest":        {c, http.MethodPost, "/v1.1/face/search", map[string]any{"probes": []string{image, image}, "threshold": 0}},
		"SearchRequestV1":            {c, http.MethodPost, "/v1/face/search", search},
		"MatchesRequest":             {&manager, http.MethodPost, "/v1.1/face/matches", search},
		"DuplicatesRequest":          {&manager, http.MethodPost, "/v1.1/jobs/duplicates", nil},
		"VerifySubjectProbesRequest": {c, http.MethodPost, "/v1.1/face/verify", map[string]any{"probes": []string{image, image}}},
		"VerifySubjectRequest":       {c, http.MethodPost, "/v1.1/face/verify", probe},
		"VerifyRequestV1":            {c, http.MethodPost, "/v1/face/verify", probe},
		"BulkRequest":                {c, http.MethodPost, "/v1.1/jobs/bulkregister", nil},
	}
	send := func(member string, size int, value any) nodetest.Answer {
		of, name, _ := strings.Cut(member, ".")
		switch of {
		case "GalleryCreate":
			galleries++
			return request{n.admin, http.MethodPost, "/api/galleries", map[string]any{"name": fmt.Sprint("gallery ", galleries), "faceMinimumQualityScore": .5, "size": 1}}.with(t, n.base, name, value)
		case "BulkItem":
			return bodies["BulkRequest"].with(t, n.base, "registrations", []map[string]any{{"filename": "a", name: value}})
		case "BulkRequest":
			list := make([]map[string]any, size)
			for i := range list {
				list[i] = map[string]any{"filename": "a"}
			}
			if size > 0 {
				list[size-1]["tags"] = []string{"unknown"}
			}
			return bodies[of].with(t, n.base, name, list)
		case "CompareRequest":
			list := slices.Repeat([]map[string]any{{"token": compared.Faces[0].Token}}, size)
			return c.Call(t, n.base, http.MethodPost, "/v1.1/face/compare", map[string]any{"faces": list})
		case "IdempotencyKey":
			return c.Call(t, n.base, http.MethodPost, "/v1.1/subjects", person(member), sigv4.Header{Name: "idempotency-key", Value: value.(string)})
		case "Length", "Start":
			return c.Call(t, n.base, http.MethodGet, fmt.Sprintf("/v1.1/subjects?%s=%d", strings.ToLower(of), size), nil)
		case "TagName":
			return tagless.Call(t, n.base, http.MethodPost, "/v1.1/tags/"+value.(string), nil)
		case "Tags":
			return request{c, http.MethodPost, "/v1.1/subjects", person("b")}.with(t, n.base, "tags", names[:size])
		}
		if name == "tags" {
			value = names[:size]
		}
		return bodies[of].with(t, n.base, name, value)
	}
	for i, b := range bounds {
		letter := string('a' + rune(i%26)) // no two galleries have one name
		b.check(t, letter, func(size float64, value any) nodetest.Answer { return send(b.member, int(size), value) })
	}
}

// check sends the least and the most, and what lies beyond. A text is the letter, as
// often as size says.
func (b bound) check(t *testing.T, letter string, send func(size float64, value any) nodetest.Answer) {
	t.Helper()
	step, text := 1.0, strings.Contains(b.beyond, "characters") || regexp.MustCompile(`(name|[iI]d|filename|Key|Name)$`).MatchString(b.member)
	if strings.HasSuffix(b.member, "QualityScore") {
		step = .0001
	}
	ask := func(size float64) nodetest.Answer {
		if text {
			return send(size, strings.Repeat(letter, int(size)))
		}
		return send(size, size)
	}
	counted := text || strings.HasSuffix(b.member, "registrations") || strings.HasSuffix(b.member, "faces") || strings.HasSuffix(strings.ToLower(b.member), "tags")
	for _, size := range []float64{b.least, b.most} {
		if a := ask(size); fmt.Sprint(a.Status) != b.at && (len(b.at) == 3 || !strings.Contains(string(a.Body), b.at)) {
			t.Errorf("%s at %v: %d %.300s, want %s", b.member, size, a.Status, a.Body, b.at)
		}
	}
	for _, size := range []float64{b.least - step, b.most + step} {
		if counted && size < 0 {
			continue
		}
		a := ask(size)
		var refusal struct{ Message, ErrorType string }
		if a.Decode(t, &refusal); a.Status != 400 || refusal.ErrorType != "InvalidRequest" || !strings.Contains(refusal.Message, b.beyond) {
			t.Errorf("%s at %v: %d %.300s, want 400 InvalidRequest, %q", b.member, size, a.Status, a.Body, b.beyond)
		}
	}
}

// An id has 1 to 128 characters in a path. One that is unknown, malformed or too long
// is 404.
func idsInPaths(t *testing.T, n tenant) {
	c := n.gallery(t, "g", 1)
	for method, targets := range map[string][]string{
		http.MethodGet:    {"/api/galleries/%s", "/api/applications/%s", "/v1.1/subjects/%s/events", "/v1.1/jobs/bulkregister/%s"},
		http.MethodDelete: {"/v1.1/subjects/%s", "/v1/subjects/%s", "/v1.1/face/checks/%s", "/v1.1/subjects/00000000-0000-4000-8000-000000000000/events/%s"},
	} {
		for _, target := range targets {
			for _, length := range []int{1, 128, 129} {
				as := c
				if strings.HasPrefix(target, "/api/") {
					as = n.admin
				}
				if a := as.Call(t, n.base, method, fmt.Sprintf(target, strings.Repeat("n", length)), nil); a.Status != http.StatusNotFound {
					t.Errorf("%s %s with %d characters: %d %s", method, target, length, a.Status, a.Body)
				}
			}
		}
	}
}

func tags(t *testing.T, n tenant) {
	c := n.gallery(t, "g", 1)
	for i := range 64 {
		post(t, c, n.base, fmt.Sprintf("/v1.1/tags/%d", i), nil, http.StatusOK, nil)
	}
	var refusal struct{ ErrorType, Reason string }
	post(t, c, n.base, "/v1.1/tags/64", nil, http.StatusBadRequest, &refusal)
	if refusal.ErrorType != "InvalidRequest" || refusal.Reason != "TagLimit" {
		t.Errorf("tag 65: %+v", refusal)
	}
	var names []string
	if c.Call(t, n.base, http.MethodGet, "/v1.1/tags", nil).Decode(t, &names); len(names) != 64 {
		t.Errorf("%d tags", len(names))
	}
	c.Call(t, n.base, http.MethodDelete, "/v1.1/tags/7", nil)
	post(t, c, n.base, "/v1.1/tags/64", nil, http.StatusOK, nil)
}

// crowd returns a picture of 25 faces: a portrait's head, 5 by 5 times.
func crowd(t *testing.T) string {
	t.Helper()
	portrait, err := jpeg.Decode(bytes.NewReader(sample(t, "obama.jpg")))
	must.Do(t, err)
	head := image.Rect(360, 60, 640, 380)
	picture := image.NewRGBA(image.Rect(0, 0, 5*head.Dx(), 5*head.Dy()))
	for i := range 25 {
		at := image.Pt(i%5*head.Dx(), i/5*head.Dy())
		draw.Draw(picture, image.Rectangle{at, at.Add(head.Size())}, portrait, head.Min, draw.Src)
	}
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, picture, nil))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func faces(t *testing.T, n tenant) {
	c, picture := n.gallery(t, "g", 1), crowd(t)
	f := func(target string, limit any, want int) {
		t.Helper()
		var found struct{ Faces []any }
		post(t, c, n.base, target, map[string]any{"faces": picture, "limit": limit}, http.StatusOK, &found)
		if len(found.Faces) != want {
			t.Errorf("%s of 25 faces, limit %v: %d faces, want %d", target, limit, len(found.Faces), want)
		}
	}
	f("/v1.1/face/extract", nil, 10)
	f("/v1.1/face/extract", 11, 11)
	f("/v1.1/face/extract", 20, 20)
	f("/v1.1/face/extract", 21, 20)
	f("/v1/face/extract", 20, 10) // version 1 has no limit
	post(t, c, n.base, "/v1.1/subjects", map[string]any{"face": picture}, http.StatusBadRequest, nil)
}

func searches(t *testing.T, n tenant) {
	c := n.gallery(t, "g", 100)
	for i := range 51 {
		post(t, c, n.base, "/v1.1/subjects", person(fmt.Sprint(i)), http.StatusCreated, nil)
	}
	for _, version := range []string{"/v1.1", "/v1"} {
		for limit, want := range map[any]int{nil: 10, 11: 11, 50: 50} {
			var found struct{ Candidates []any }
			body := map[string]any{"probe": nodetest.Image("person a"), "threshold": 0, "limit": limit}
			post(t, c, n.base, version+"/face/search", body, http.StatusOK, &found)
			if len(found.Candidates) != want {
				t.Errorf("%s: %d candidates of 51, limit %v, want %d", version, len(found.Candidates), limit, want)
			}
		}
	}
}

// Two faces are the same person from 7000 on, unless the client or its application
// says otherwise. Equal images score 9999.
func thresholds(t *testing.T, n tenant) {
	table := enginetest.Shared(t).Table()
	at := table.Least(router.ThresholdDefault)
	below := math.Nextafter32(at, 0)
	probe := nodetest.Image("person cosine=1")
	f := func(name, cosine string, score, status int) {
		t.Helper()
		c := n.gallery(t, name, 2)
		image := nodetest.Image("person cosine=" + cosine)
		var s struct{ ID string }
		post(t, c, n.base, "/v1.1/subjects", map[string]any{"face": image}, http.StatusCreated, &s)
		for target, body := range map[string]map[string]any{
			"/v1.1/face/search": {"probe": probe}, "/v1/face/search": {"probe": probe},
			"/v1.1/face/verify": {"probe": probe, "id": s.ID}, "/v1/face/verify": {"probe": probe, "id": s.ID},
		} {
			post(t, c, n.base, target, body, status, nil)
		}
		var v struct{ Score int }
		post(t, c, n.base, "/v1.1/face/verify", map[string]any{"probe": probe, "face": image}, status, &v)
		if v.Score != score {
			t.Errorf("%s: score %d, want %d", name, v.Score, score)
		}
		post(t, c, n.base, "/v1.1/face/search", map[string]any{"probe": probe, "threshold": score}, http.StatusOK, nil)
		if score < 9999 {
			post(t, c, n.base, "/v1.1/face/search", map[string]any{"probe": probe, "threshold": score + 1}, http.StatusNotFound, nil)
		}
		var app struct{ ID string }
		var apps struct{ Applications []struct{ ID, APIKey string } }
		n.admin.Call(t, n.base, http.MethodGet, "/api/applications", nil).Decode(t, &apps)
		for _, a := range apps.Applications {
			if a.APIKey == c.APIKey {
				app.ID = a.ID
			}
		}
		n.admin.Call(t, n.base, http.MethodPatch, "/api/applications/"+app.ID, map[string]any{"enrolmentGuard": true})
		guarded := http.StatusCreated
		if status == http.StatusOK {
			guarded = http.StatusBadRequest
		}
		post(t, c, n.base, "/v1.1/subjects", person("guarded cosine=1"), guarded, nil)
	}
	f("at 7000", fmt.Sprint(at), 7000, http.StatusOK)
	f("at 6999", fmt.Sprint(below), 6999, http.StatusNotFound)
	f("at 9999", "1", 9999, http.StatusOK)
}

// The minimum quality of the application counts for enrolments, inclusive.
func quality(t *testing.T, n tenant) {
	var g struct{ APIKey string }
	post(t, n.admin, n.base, "/api/galleries", map[string]any{"name": "g", "faceMinimumQualityScore": .5, "size": 9}, http.StatusOK, &g)
	c := *n.biometric
	c.APIKey = g.APIKey
	post(t, &c, n.base, "/v1.1/subjects", person("quality=0.5"), http.StatusCreated, nil)
	var refusal struct{ ErrorType string }
	if post(t, &c, n.base, "/v1.1/subjects", person("quality=0.4999"), http.StatusBadRequest, &refusal); refusal.ErrorType != "PoorQuality" {
		t.Errorf("quality 0.4999: %+v", refusal)
	}
}

// A second face counts from a score of 0.9 and 35 % of the largest face's side.
func secondFace(t *testing.T, n tenant) {
	c := n.gallery(t, "g", 9)
	for beside, status := range map[string]int{
		"score=0.9 side=0.35": http.StatusBadRequest, "score=0.8999 side=0.35": http.StatusCreated, "score=0.9 side=0.3499": http.StatusCreated,
	} {
		post(t, c, n.base, "/v1.1/subjects", person(beside), status, nil)
	}
}

func bodies(t *testing.T, n tenant) {
	text := `{"faces":"` + nodetest.Image("person a") + `"}`
	whole := []byte(text + strings.Repeat(" ", 20<<20-len(text)))
	post(t, n.biometric, n.base, "/v1.1/face/extract", whole, http.StatusOK, nil)
	post(t, n.biometric, n.base, "/v1.1/face/extract", append(whole, ' '), http.StatusRequestEntityTooLarge, nil)
}
