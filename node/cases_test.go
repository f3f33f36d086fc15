package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/job"
)

// reviewCase is a case as clients see it.
type reviewCase struct {
	ID, State, SubjectID, ExternalID, ApplicationID, Reference, Created, Expires, Closed, PhotoLink string

	Score, Threshold, VerdictsNeeded, VerdictsGiven int
	Verdicts                                        []struct{ Verdict, Holder string }
}

// review is a gallery whose application takes each stranger for a doubt, and people who decide.
type review struct {
	promises
	name  string // of the tenant
	admin *nodetest.Client
	// people are the reviewers by name. "" has no holder.
	people map[string]*nodetest.Client
	ids    map[string]string // of subjects by external id
	app    string
}

const reviewLink = "https://hr.example/{externalId}"

func startReview(t *testing.T, verdicts int) *review {
	t.Helper()
	return startReviewOn(t, nodetest.Options{}, verdicts)
}

func startReviewOn(t testing.TB, o nodetest.Options, verdicts int) *review {
	t.Helper()
	o.SlotsPerShard, o.Table = max(o.SlotsPerShard, 100), nodetest.Table()
	cluster := nodetest.Start(t, o)
	waitNewest(t, cluster)
	return reviewOf(t, cluster, "bank", verdicts)
}

// reviewOf makes a tenant with a review.
func reviewOf(t testing.TB, cluster *nodetest.Cluster, tenant string, verdicts int) *review {
	t.Helper()
	r := &review{promises: promises{cluster}, name: tenant, admin: cluster.Client(tenant)}
	gallery(t, r.admin, r.url(0), "g", 400)
	r.app = applicationID(t, r.admin, r.url(0))
	expect(t, r.admin, http.StatusOK, r.url(0), http.MethodPatch, "/api/galleries/"+galleryID(t, r.admin, r.url(0)), map[string]any{"photoLink": reviewLink})
	r.set(t, map[string]any{"reviewThreshold": 1, "reviewVerdicts": verdicts})
	people := map[string]string{}
	for i := range 4 {
		people[fmt.Sprint("staff/", i)] = fmt.Sprint("person ", i)
	}
	r.ids = enrolled(t, r.admin, r.url(1), people)
	r.people = map[string]*nodetest.Client{}
	for _, name := range []string{"anna", "ben", ""} {
		r.people[name] = r.admin.Keyed(newKey(t, r.cluster, r.tenant(t), router.KeyTerms{Role: router.RoleReviewer, Holder: name}))
		r.people[name].APIKey = r.admin.APIKey
	}
	return r
}

func (r *review) tenant(t testing.TB) id.Tenant {
	t.Helper()
	tenant, err := r.cluster.Nodes[0].Node.Router().TenantNamed(t.Context(), r.name)
	must.Do(t, err)
	return tenant
}

// set changes the settings of the application.
func (r *review) set(t testing.TB, settings map[string]any) {
	t.Helper()
	expect(t, r.admin, http.StatusOK, r.url(0), http.MethodPatch, "/api/applications/"+r.app, settings)
	for i := range 3 { // each catches up with meta
		expect(t, r.admin, http.StatusOK, r.url(i), http.MethodGet, "/api/applications/"+r.app, nil)
	}
}

// stranger returns the text of a photo that has a score of 1 to 6999 with that of person. Each visit has another one.
func stranger(t testing.TB, person, visit string) string {
	t.Helper()
	template := func(text string) engine.Template {
		faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(text))
		must.Do(t, err)
		return faces[0].Template
	}
	for i := 0; ; i++ {
		text := fmt.Sprint("stranger ", visit, i)
		if s := nodetest.Table().Score(score.Dot(template(text), template(person))); s > 100 && s < 7000 {
			return text
		}
	}
}

// doubt verifies a stranger against a subject and returns the case.
func (r *review) doubt(t *testing.T, external, reference string) (caseID string) {
	t.Helper()
	body := map[string]any{"id": r.ids[external], "probe": nodetest.Image(stranger(t, "person "+external[len("staff/"):], reference))}
	if reference != "" {
		body["reference"] = reference
	}
	var a struct {
		Reason, CaseID, ID string
		Score              int
	}
	for i := range 3 {
		a.CaseID = ""
		expect(t, r.admin, http.StatusNotFound, r.url(i), http.MethodPost, "/v1.1/face/verify", body).Decode(t, &a)
		if reference == "" || a.Reason != "Doubtful" || a.ID != r.ids[external] || a.Score < 1 {
			break
		}
		if i > 0 && a.CaseID != caseID {
			t.Errorf("the same photo has the cases %s and %s", caseID, a.CaseID)
		}
		caseID = a.CaseID
	}
	if a.Reason != "Doubtful" {
		t.Fatalf("%+v", a)
	}
	return a.CaseID
}

func (r *review) list(t *testing.T, who, query string) (all []reviewCase) {
	t.Helper()
	for i, after := 0, ""; ; i++ {
		var page struct {
			Total           int
			Cases           []reviewCase
			PhotoLink, Next string
		}
		expect(t, r.people[who], http.StatusOK, r.url(i%3), http.MethodGet, "/v1.1/cases?length=2"+query+after, nil).Decode(t, &page)
		if page.PhotoLink != reviewLink {
			t.Errorf("the link is %q", page.PhotoLink)
		}
		if all = append(all, page.Cases...); page.Next == "" {
			return all
		}
		after = "&after=" + page.Next
	}
}

func (r *review) one(t *testing.T, who, caseID string) (c reviewCase) {
	t.Helper()
	expect(t, r.people[who], http.StatusOK, r.url(2), http.MethodGet, "/v1.1/cases/"+caseID, nil).Decode(t, &c)
	return c
}

// decide reports an error unless a verdict has the status and the answer that are wanted.
func (r *review) decide(t *testing.T, who, caseID, verdict string, status int, want string) {
	t.Helper()
	var a struct{ State, Reason string }
	expect(t, r.people[who], status, r.url(1), http.MethodPut, "/v1.1/cases/"+caseID+"/verdict", map[string]string{"verdict": verdict}).Decode(t, &a)
	if a.State+a.Reason != want {
		t.Errorf("%q says %s: %+v, want %s", who, verdict, a, want)
	}
}

// redact does a round on all nodes.
func (r *review) redact(t *testing.T) {
	t.Helper()
	for _, m := range r.cluster.Nodes {
		if err := m.Node.RedactDuplicates(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoPeopleCloseCase(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 2)
		first, second, third := r.doubt(t, "staff/0", "visit 1"), r.doubt(t, "staff/1", ""), r.doubt(t, "staff/0", "visit 2")
		if c := r.one(t, "anna", first); c.State != "open" || c.SubjectID != r.ids["staff/0"] || c.ExternalID != "staff/0" || c.Reference != "visit 1" ||
			c.Threshold != 7000 || c.Score < 1 || c.VerdictsNeeded != 2 || c.ApplicationID != r.app || c.PhotoLink != reviewLink || c.Expires == "" || c.Closed != "" {
			t.Errorf("%+v", c)
		}
		created := func(list []reviewCase) (ids []string) {
			for _, c := range list {
				ids = append(ids, c.ID)
			}
			return ids
		}
		if got := created(r.list(t, "ben", "&state=open")); !slices.Equal(got, []string{first, second, third}) {
			t.Errorf("open are %v, want %v", got, []string{first, second, third})
		}
		nodetest.Step(t, "two different holders close it", func(t *testing.T) {
			r.decide(t, "", first, "same", http.StatusBadRequest, "HolderNeeded")
			r.decide(t, "anna", first, "same", http.StatusOK, "open")
			r.decide(t, "anna", first, "same", http.StatusOK, "open")
			r.decide(t, "anna", first, "different", http.StatusBadRequest, "VerdictGiven")
			if c := r.one(t, "ben", first); c.VerdictsGiven != 1 || len(c.Verdicts) != 0 {
				t.Errorf("the second person sees %+v", c)
			}
			if c := r.one(t, "anna", first); len(c.Verdicts) != 1 || c.Verdicts[0].Verdict != "same" {
				t.Errorf("the first person sees %+v", c)
			}
			r.decide(t, "ben", first, "same", http.StatusOK, "same")
			r.decide(t, "ben", first, "same", http.StatusOK, "same")
			r.decide(t, "ben", first, "different", http.StatusBadRequest, "CaseClosed")
			if c := r.one(t, "anna", first); c.State != "same" || len(c.Verdicts) != 2 || c.Verdicts[1].Holder != "ben" || c.Closed == "" || c.Expires != "" {
				t.Errorf("%+v", c)
			}
		})
		nodetest.Step(t, "who disagree dispute it", func(t *testing.T) {
			var both sync.WaitGroup
			for who, verdict := range map[string]string{"anna": "same", "ben": "different"} {
				both.Go(func() {
					a := r.people[who].Call(t, r.url(len(who)%3), http.MethodPut, "/v1.1/cases/"+second+"/verdict", map[string]string{"verdict": verdict})
					if a.Status != http.StatusOK {
						t.Errorf("%d %s", a.Status, a.Body)
					}
				})
			}
			both.Wait()
			if c := r.one(t, "anna", second); c.State != "disputed" {
				t.Errorf("%+v", c)
			}
			if got := created(r.list(t, "anna", "&state=closed")); !slices.Equal(got, []string{first, second}) {
				t.Errorf("closed are %v", got)
			}
		})
		nodetest.Step(t, "a restart of all nodes loses nothing", func(t *testing.T) {
			r.decide(t, "anna", third, "different", http.StatusOK, "open")
			restart(r.cluster, 0, 1, 2)
			r.decide(t, "ben", third, "different", http.StatusOK, "different")
			if got := created(r.list(t, "anna", "")); !slices.Equal(got, []string{first, second, third}) {
				t.Errorf("%v", got)
			}
		})
		nodetest.Step(t, "another tenant knows nothing of it", func(t *testing.T) {
			other := r.cluster.Client("another bank")
			gallery(t, other, r.url(0), "g", 10)
			expect(t, other, http.StatusNotFound, r.url(0), http.MethodGet, "/v1.1/cases/"+first, nil)
			expect(t, other, http.StatusNotFound, r.url(0), http.MethodPut, "/v1.1/cases/"+third+"/verdict", map[string]string{"verdict": "same"})
		})
	})
}

// TestErasedSubjectLeavesItsCases looks into the replicas for what names the subject.
func TestErasedSubjectLeavesItsCases(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		open, closed, other := r.doubt(t, "staff/0", "visit 1"), r.doubt(t, "staff/0", "visit 2"), r.doubt(t, "staff/1", "visit 3")
		r.decide(t, "", closed, "different", http.StatusOK, "different")
		expect(t, r.admin, http.StatusNoContent, r.url(0), http.MethodDelete, "/v1.1/subjects/"+r.ids["staff/0"], nil)
		gone := func(caseID string) {
			t.Helper()
			if c := r.one(t, "anna", caseID); c.State != "erased" || c.SubjectID+c.ExternalID+c.Reference != "" || c.Score != 0 || len(c.Verdicts) != 0 {
				t.Errorf("%+v", c)
			}
		}
		gone(open)
		gone(closed)
		r.decide(t, "anna", open, "same", http.StatusBadRequest, "CaseClosed")
		if got := r.list(t, "anna", "&state=open"); len(got) != 1 || got[0].ID != other {
			t.Errorf("open are %+v", got)
		}
		r.redact(t)
		subject := parsed(t, r.ids["staff/0"])
		for i, m := range r.cluster.Nodes {
			within(t, 20*time.Second, fmt.Sprintf("node %d keeps no case", i), func() bool {
				return !slices.ContainsFunc(m.Node.CasesHere(t), func(c job.Case) bool {
					return c.Subject.UUID == subject || c.Reference == "visit 1" || c.Reference == "visit 2"
				})
			})
		}
		gone(open)
		gone(closed)
		if c := r.one(t, "anna", other); c.State != "open" || c.SubjectID != r.ids["staff/1"] {
			t.Errorf("%+v", c)
		}
	})
}

// TestCaseExpiresInTime moves the end of a case into the past, as the days do.
func TestCaseExpiresInTime(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		caseID := r.doubt(t, "staff/0", "visit 1")
		c := r.one(t, "anna", caseID)
		created, _ := time.Parse(time.RFC3339, c.Created)
		expires, err := time.Parse(time.RFC3339, c.Expires)
		if err != nil || expires.Sub(created) != 7*24*time.Hour {
			t.Errorf("from %s to %s, %v", c.Created, c.Expires, err)
		}
		for _, m := range r.cluster.Nodes {
			m.Node.AgeCases(t, func(c *job.Case) { c.Expires = time.Now().UnixMilli() - 1 })
		}
		f := func(when string) {
			t.Helper()
			if c := r.one(t, "anna", caseID); c.State != "expired" || c.Closed == "" {
				t.Errorf("%s: %+v", when, c)
			}
			r.decide(t, "anna", caseID, "same", http.StatusBadRequest, "CaseClosed")
		}
		f("at once")
		r.redact(t)
		f("after a round")
		time.Sleep(time.Second) // else the signature is the same, and so is the case
		if next := r.doubt(t, "staff/0", "visit 1"); next == caseID {
			t.Error("a case that has expired is open again")
		}
		for _, m := range r.cluster.Nodes {
			m.Node.AgeCases(t, func(c *job.Case) {
				if c.State == job.CaseExpired {
					c.Closed = time.Now().Add(-31 * 24 * time.Hour).UnixMilli()
				}
			})
		}
		r.redact(t)
		if got := r.list(t, "anna", ""); len(got) != 1 || got[0].State != "open" {
			t.Errorf("after 31 days: %+v", got)
		}
	})
}

// TestDoubtIsNoMatch compares answers with and without a review band.
func TestDoubtIsNoMatch(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		type candidates []struct {
			ID    string
			Score int
		}
		search := func(person string, threshold, status int) (found, doubtful candidates) {
			t.Helper()
			var a struct{ Candidates, Doubtful candidates }
			body := map[string]any{"probe": nodetest.Image(person), "threshold": threshold, "limit": 50}
			expect(t, r.admin, status, r.url(1), http.MethodPost, "/v1.1/face/search", body).Decode(t, &a)
			return a.Candidates, a.Doubtful
		}
		found, doubtful := search("person 1", 7000, http.StatusOK)
		if len(found) != 1 || found[0].ID != r.ids["staff/1"] || len(doubtful) == 0 {
			t.Fatalf("%+v, doubtful %+v", found, doubtful)
		}
		for _, d := range doubtful {
			if d.Score < 1 || d.Score >= 7000 || d.ID == found[0].ID {
				t.Errorf("doubtful: %+v", d)
			}
		}
		if found, doubtful := search(stranger(t, "person 0", ""), 7000, http.StatusNotFound); len(found) != 0 || len(doubtful) == 0 {
			t.Errorf("a stranger: %+v, doubtful %+v", found, doubtful)
		}
		if _, doubtful := search("person 1", 1, http.StatusOK); len(doubtful) != 0 {
			t.Errorf("no band is below the threshold 1, doubtful %+v", doubtful)
		}
		v1 := expect(t, r.admin, http.StatusNotFound, r.url(0), http.MethodPost, "/v1/face/verify", map[string]any{"id": r.ids["staff/0"], "probe": nodetest.Image(stranger(t, "person 0", ""))})
		var refused struct{ Reason, CaseID string }
		if v1.Decode(t, &refused); refused.Reason != "NotVerified" || refused.CaseID != "" {
			t.Errorf("version 1 answers %+v", refused)
		}
		if got := r.list(t, "anna", ""); len(got) != 0 {
			t.Errorf("searches and version 1 have opened %+v", got)
		}
		expect(t, r.admin, http.StatusOK, r.url(0), http.MethodPost, "/v1.1/face/verify", map[string]any{"id": r.ids["staff/0"], "probe": nodetest.Image("person 0")})
		r.set(t, map[string]any{"reviewThreshold": 0})
		again, doubtful := search("person 1", 7000, http.StatusOK)
		if !slices.Equal(again, found) || doubtful != nil {
			t.Errorf("without a band: %+v, doubtful %+v", again, doubtful)
		}
	})
}

// TestDoubtIsAnsweredBeyondBound fills a tenant's share of cases.
func TestDoubtIsAnsweredBeyondBound(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		setQuota(t, r.cluster, r.tenant(t), metafsm.QuotaJobItems, 2)
		if r.doubt(t, "staff/0", "visit 1") == "" || r.doubt(t, "staff/0", "visit 2") == "" {
			t.Fatal("no case")
		}
		if got := r.doubt(t, "staff/0", "visit 3"); got != "" {
			t.Errorf("a third case, %s", got)
		}
		dropped := uint64(0)
		for _, m := range r.cluster.Nodes {
			f := m.Node.Router().CaseFigures()
			dropped += f.Dropped
		}
		if dropped == 0 {
			t.Error("nobody counted it")
		}
	})
}
