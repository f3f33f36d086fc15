package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/httpapi"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// trail is a tenant whose requests have audit records.
type trail struct {
	tenant
	s        *service
	app      *nodetest.Client
	appAdmin *nodetest.Client
	gallery  id.Gallery
}

func startTrail(t *testing.T) *trail {
	t.Helper()
	s := startFaces(t)
	own := s.tenant(t, "trail", 0)
	must.Do(t, s.Nodes[0].Node.Router().SetAudit(t.Context(), own.key.Tenant, metafsm.AuditBestEffort, 0))
	l := &trail{tenant: own, s: s, app: own.gallery(t, "app", 50)}
	admin := *own.admin
	admin.APIKey = l.app.APIKey
	l.appAdmin, l.gallery = &admin, own.galleryID(t, "app")
	return l
}

// record is a record as an auditor sees it.
type record map[string]any

// names returns the MACs of the subjects that a record names.
func (r record) names() (list []string) {
	subjects, _ := r["subjects"].([]any)
	for _, s := range subjects {
		list = append(list, s.(string))
	}
	candidates, _ := r["candidates"].([]any)
	for _, c := range candidates {
		list = append(list, c.(map[string]any)["subject"].(string))
	}
	return list
}

// records returns the records of a request in their order, as soon as the last one is that of the answer.
func (l *trail) records(t *testing.T, request string) (list []record) {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		var page struct{ Records []record }
		must.Do(t, json.Unmarshal(l.admin.Call(t, l.base, http.MethodGet, "/api/audit?reads=false&length=200", nil).Body, &page))
		slices.Reverse(page.Records) // the newest is first
		list = slices.DeleteFunc(page.Records, func(r record) bool { return r["requestId"] != request })
		if len(list) > 0 && list[len(list)-1]["kind"] == "request" {
			return list
		}
	}
	t.Fatalf("request %s has the records %v", request, list)
	return nil
}

// send sends a request, checks its status, and returns its records.
func (l *trail) send(t *testing.T, c *nodetest.Client, status int, target string, body any) []record {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	a := c.Call(t, l.base, method, path, body)
	if a.Status != status {
		t.Fatalf("%s: %d %s, want %d", target, a.Status, a.Body, status)
	}
	return l.records(t, a.Header.Get("X-Request-Id"))
}

const (
	ofSearch = "candidates generation limit pack probe quality searched threshold"
	ofPhoto  = "probe quality"
	ofWrite  = "quality subjects"
)

// TestRecordsSayWhomSearchesFound sends each operation that searches or takes an image. Its record must say with
// which photo, how and where was searched, and whom the answer named.
func TestRecordsSayWhomSearchesFound(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		l := startTrail(t)
		face := func(of string) string { return nodetest.Image("person " + of) }
		made := func(c *nodetest.Client, target string, body any) (is struct{ ID, EventID string }) {
			t.Helper()
			a := c.Call(t, l.base, http.MethodPost, target, body)
			if a.Decode(t, &is); a.Status >= 300 {
				t.Fatalf("%s: %d %s", target, a.Status, a.Body)
			}
			return is
		}
		alice := made(l.app, "/v1.1/subjects", map[string]any{"face": face("alice"), "externalId": "4711"})
		check := made(l.app, "/v1.1/face/checks", map[string]any{})
		l.guard(t)
		subject := "/v1.1/subjects/" + alice.ID
		enrol, replace := map[string]any{"face": face("bob")}, map[string]any{"face": face("alice")}
		probe := map[string]any{"probe": face("alice")}
		verify := map[string]any{"probe": face("alice"), "id": alice.ID}
		compare := map[string]any{"faces": []any{map[string]any{"face": face("alice")}, map[string]any{"face": face("bob")}}}
		rows := []struct {
			operation, target string
			status            int
			body              any
			want              string
		}{
			{"GET /v1.1/subjects", "GET /v1.1/subjects?externalId=4711", 200, nil, "subjects"},
			{"POST /v1.1/subjects", "POST /v1.1/subjects", 201, enrol, ofWrite},
			{"POST /v1.1/subjects", "POST /v1.1/subjects", 400, replace, ofSearch},
			{"PUT /v1.1/subjects/{subjectId}", "PUT " + subject, 200, replace, ofWrite},
			{"POST /v1.1/subjects/{subjectId}/events", "POST " + subject + "/events", 201, replace, ofWrite},
			{"PUT /v1.1/subjects/{subjectId}/events/{eventId}", "PUT " + subject + "/events/" + alice.EventID, 200, replace, ofWrite},
			{"POST /v1.1/face/extract", "POST /v1.1/face/extract", 200, map[string]any{"faces": face("alice")}, ofPhoto},
			{"POST /v1.1/face/verify", "POST /v1.1/face/verify", 200, verify, "candidates probe subjects"},
			{"POST /v1.1/face/verify", "POST /v1.1/face/verify", 200, map[string]any{"probe": face("alice"), "face": face("alice")}, "probe"},
			{"POST /v1.1/face/compare", "POST /v1.1/face/compare", 200, compare, "probe"},
			{"POST /v1.1/face/search", "POST /v1.1/face/search", 200, probe, ofSearch},
			{"POST /v1.1/face/matches", "POST /v1.1/face/matches", 200, probe, ofSearch},
			{"POST /v1.1/face/checks/{checkId}", "POST /v1.1/face/checks/" + check.ID, 200, map[string]any{"row": 1, "face": face("alice"), "externalId": "4711"}, ofSearch + " subjects"},
			{"POST /v1/subjects", "POST /v1/subjects", 201, map[string]any{"face": face("carol")}, ofWrite},
			{"PUT /v1/subjects/{id}", "PUT /v1/subjects/" + alice.ID, 200, replace, ofWrite},
			{"POST /v1/face/extract", "POST /v1/face/extract", 200, map[string]any{"faces": face("alice")}, ofPhoto},
			{"POST /v1/face/verify", "POST /v1/face/verify", 200, verify, "candidates probe subjects"},
			{"POST /v1/face/search", "POST /v1/face/search", 200, probe, ofSearch},
		}
		missing := httpapi.Imaging()
		var name, mac string
		for _, row := range rows {
			missing = slices.DeleteFunc(missing, func(o string) bool { return o == row.operation })
			all := l.send(t, l.appAdmin, row.status, row.target, row.body)
			r := all[len(all)-1]
			var got []string
			for field := range strings.FieldsSeq(ofSearch + " subjects") {
				if r[field] != nil {
					got = append(got, field)
				}
			}
			if got := strings.Join(got, " "); got != row.want || r["operation"] != row.operation {
				t.Errorf("%s: the record has %s, want %s: %v", row.target, got, row.want, r)
			}
			if row.want == "subjects" { // the first one
				name = strings.Join(r.names(), " ")
			}
			if new := row.status == http.StatusCreated && !strings.HasSuffix(row.target, "/events"); !new && slices.ContainsFunc(r.names(), func(n string) bool { return n != name }) {
				t.Errorf("%s: the record names %v, want %s", row.target, r.names(), name)
			}
			if probe, ok := r["probe"].(string); ok && row.operation != "POST /v1.1/face/compare" {
				if mac == "" {
					mac = probe
				}
				if probe != mac {
					t.Errorf("%s: the same photo has another name", row.target)
				}
			}
			if row.status == http.StatusBadRequest && r["reason"] != "Duplicate" {
				t.Errorf("%s: the reason is %v", row.target, r["reason"])
			}
		}
		if len(missing) > 0 {
			t.Errorf("no row for %v", missing)
		}
	})
}

// guard lets the application guard its enrolments.
func (l *trail) guard(t *testing.T) (application string) {
	t.Helper()
	var list struct{ Applications []struct{ ID string } }
	l.admin.Call(t, l.base, http.MethodGet, "/api/applications", nil).Decode(t, &list)
	l.send(t, l.admin, http.StatusOK, "PATCH /api/applications/"+list.Applications[0].ID, map[string]any{"enrolmentGuard": true})
	return list.Applications[0].ID
}

// TestRecordsSayWhatChangedAndWhy follows changes of galleries, applications and subjects, and refusals: intent and
// outcome say what the request was about, and the outcome why it was refused.
func TestRecordOfBadVerdictHasNone(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		l := startTrail(t)
		const name = "0195d3a0-0000-7000-8000-000000000001"
		for _, r := range l.send(t, l.appAdmin, 400, "PUT /v1.1/cases/"+name+"/verdict", map[string]any{"verdict": "maybe"}) {
			if r["verdict"] != nil || r["case"] != name {
				t.Errorf("the record has the verdict %v of case %v, want none of %s", r["verdict"], r["case"], name)
			}
		}
	})
}

func TestRecordsSayWhatChangedAndWhy(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		l := startTrail(t)
		application, gallery := l.guard(t), l.gallery.String()
		other := l.tenant.gallery(t, "other", 9)
		moreKeys(t, l.s, l.tenant)
		bound := l.keyed(t, l.s, other, router.KeyTerms{Role: router.RoleBiometric, Galleries: []id.Gallery{l.gallery}})
		f := func(c *nodetest.Client, status int, target string, body any, want ...string) {
			t.Helper()
			var got []string
			for _, r := range l.send(t, c, status, target, body) {
				line := fmt.Sprint(r["kind"], " ", r["reason"], " ", len(r.names()))
				for _, part := range []struct {
					field, name string
					is          string
				}{{"gallery", "gallery", gallery}, {"gallery", "other", l.galleryOf(t, "other")}, {"application", "application", application}} {
					if r[part.field] == part.is {
						line += " " + part.name
					}
				}
				got = append(got, line)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the records are %q, want %q", target, got, want)
			}
		}
		photo := map[string]any{"face": nodetest.Image("person alice"), "externalId": "4711"}
		f(l.app, 201, "POST /v1.1/subjects", photo, "intent <nil> 0 gallery application", "request <nil> 1 gallery application")
		f(l.app, 400, "POST /v1.1/subjects", map[string]any{"face": 7}, "request InvalidRequest 0 gallery application")
		f(l.app, 400, "POST /v1.1/subjects", map[string]any{"face": nodetest.Image("person two score=0.99 side=0.9")}, "intent <nil> 0 gallery application", "request MultipleFaces 0 gallery application")
		f(l.app, 400, "POST /v1.1/subjects", map[string]any{"face": photo["face"]}, "intent <nil> 0 gallery application", "request Duplicate 1 gallery application")
		f(l.app, 200, "PUT /v1.1/subjects/externalId:4711", photo, "intent <nil> 1 gallery application", "request <nil> 1 gallery application")
		f(l.app, 403, "GET /v1.1/cases", nil, "request Role 0")
		f(bound, 403, "GET /v1.1/subjects", nil, "request KeyTerms 0 other")
		stranger := *l.app
		stranger.APIKey = "x"
		f(&stranger, 403, "GET /v1.1/subjects", nil, "request ApiKey 0")
		f(l.admin, 200, "PATCH /api/galleries/"+gallery, map[string]any{"retentionDays": 30, "photoLink": "https://a.example/{externalId}?key=secret"},
			"intent photoLink retentionDays=30 0 gallery", "request photoLink retentionDays=30 0 gallery")
		f(l.admin, 400, "PATCH /api/galleries/"+gallery, map[string]any{"size": 1}, "intent size=1 0 gallery", "request InvalidRequest 0 gallery")
		f(l.admin, 200, "PATCH /api/applications/"+application, map[string]any{"reviewVerdicts": 2, "name": "door"},
			"intent name reviewVerdicts=2 0 application", "request name reviewVerdicts=2 0 gallery application")
		f(l.app, 403, "DELETE /api/galleries/"+gallery, nil, "request Role 0 gallery")
		f(l.admin, 204, "DELETE /api/applications/"+application, nil, "intent <nil> 0 application", "request <nil> 0 application")
		f(l.admin, 204, "DELETE /api/galleries/"+gallery, nil, "intent <nil> 0 gallery", "request <nil> 0 gallery")
	})
}

// galleryOf is galleryID as records have it.
func (l *trail) galleryOf(t *testing.T, name string) string {
	t.Helper()
	return l.galleryID(t, name).String()
}
