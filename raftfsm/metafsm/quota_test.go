package metafsm

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

var tenantB = id.Tenant{UUID: id.UUID{0xa, 0xb}}

// quotaScript makes two tenants, sets quotas of one and goes to them and beyond.
func quotaScript() []any {
	return []any{
		RaiseLevel{LevelQuotas},
		CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "tenant"}},
		SetTenant{tenantA, []QuotaValue{{QuotaGalleries, 1}, {QuotaSubjects, 12}, {QuotaRequests, 9}}},
		SetTenant{tenantA, []QuotaValue{{QuotaRequests, 0}, {QuotaChanges, 2}}},
		testCreation(3, 1),
		testCreation(5, 2),
		CreateTag{Write: testWrite(7), Gallery: id.Gallery{UUID: id.UUID{0xb, 1}}, Name: "tag"},
		CreateTag{Write: testWrite(9), Gallery: id.Gallery{UUID: id.UUID{0xb, 1}}, Name: "other"},
	}
}

func TestQuotaBytesMatchFormat(t *testing.T) {
	t.Parallel()
	again := NewKnowing(LevelQuotas)
	stored := keepsBytes(t, NewKnowing(LevelQuotas), again, "quotas.txt", quotaScript())
	used := map[Quota]uint64{QuotaSubjects: 10, QuotaGalleries: 1, QuotaApplications: 1, QuotaAccessKeys: 0, QuotaChanges: 2}
	if diff := cmp.Diff(used, again.Used()[tenantA]); diff != "" {
		t.Errorf("used after a restart (-want +got):\n%s", diff)
	}
	if err := NewKnowing(LevelQuotas - 1).Restore(bytes.NewReader(stored)); !errors.Is(err, ErrLevel) {
		t.Errorf("older software restores it: %v", err)
	}
}

// tenants returns a machine of this level with two tenants. The first has small quotas once
// the level allows it.
func tenants(t testing.TB, level uint32) *Machine {
	t.Helper()
	m := NewKnowing(LevelQuotas)
	commands := []any{
		RaiseLevel{level},
		CreateTenant{testWrite(100), Tenant{ID: tenantA, Name: "a"}},
		CreateTenant{testWrite(101), Tenant{ID: tenantB, Name: "b"}},
	}
	if level >= LevelQuotas {
		commands = append(commands, SetTenant{tenantA, []QuotaValue{
			{QuotaSubjects, 30}, {QuotaGalleries, 2}, {QuotaApplications, 3}, {QuotaAccessKeys, 1}, {QuotaChanges, 4},
		}})
	}
	for _, c := range commands {
		if got := status(t, m, c); got != Done {
			t.Fatalf("%T: %v", c, got)
		}
	}
	return m
}

// sized returns a creation of a gallery, as an operation that is remembered for 24 hours.
func sized(of id.Tenant, n byte, size uint32) CreateGallery {
	c := testCreation(n|1, n)
	c.Write.Op[1], c.Gallery.Tenant, c.Gallery.Size = n, of, size
	return c
}

func testKey(of id.Tenant, name string, state KeyState) PutAccessKey {
	return PutAccessKey{AccessKey{ID: name, Tenant: of, Role: 1, SealedSecret: []byte{1}, State: state}}
}

// Each quota refuses its tenant, not another one. A deletion gives room back.
func TestEachQuotaRefusesGrowth(t *testing.T) {
	t.Parallel()
	f := expecting(t, tenants(t, LevelQuotas))
	first := sized(tenantA, 2, 20)
	grown := func(n byte, size uint32) UpdateGallery {
		return UpdateGallery{Write: testWrite(n), Tenant: tenantA, Gallery: first.Gallery.ID, Size: &size, Shards: 1}
	}
	app := func(n byte) CreateApplication {
		a := testApplication(n)
		a.Gallery = first.Gallery.ID
		return CreateApplication{testWrite(n), a}
	}
	f("a gallery", first, Done)
	f("one that is too large", sized(tenantA, 4, 11), OverSubjects)
	f("one that fits", sized(tenantA, 4, 5), Done)
	f("a third gallery", sized(tenantA, 6, 1), OverGalleries)
	f("another tenant's", sized(tenantB, 6, 1000), Done)
	f("growth beyond the quota", grown(60, 26), OverSubjects)
	f("growth within it", grown(62, 25), Done)
	f("the gallery again", first, Replayed)
	f("a third application", app(31), Done)
	f("a fourth one", app(33), OverApplications)
	f("a key", testKey(tenantA, "A1", KeyLive), Done)
	f("the same key", testKey(tenantA, "A1", KeyLive), Done)
	f("a second one", testKey(tenantA, "A2", KeyLive), OverAccessKeys)
	f("a revoked one", testKey(tenantA, "A2", KeyRevoked), Done)
	f("the revoked one, in use again", testKey(tenantA, "A2", KeyLive), OverAccessKeys)
	f("another tenant's key", testKey(tenantB, "B1", KeyLive), Done)
	f("the first one revoked", testKey(tenantA, "A1", KeyRevoked), Done)
	f("the second one now", testKey(tenantA, "A2", KeyLive), Done)

	f("a deleted application", DeleteApplication{testWrite(64), tenantA, testApplication(31).ID}, Done)
	f("the fourth one now", app(35), Done) // the fourth keyed change
	f("a deleted gallery", DeleteGallery{testWrite(66), tenantA, sized(tenantA, 4, 5).Gallery.ID}, Done)
	f("a keyed change beyond the quota", sized(tenantA, 8, 1), OverChanges)
	f("another tenant's change", sized(tenantB, 10, 1), Done)
	late := sized(tenantA, 8, 5)
	late.Write.Time += 25 * 60 * 60 * 1000
	f("a gallery for the deleted one, a day later", late, Done)
	f("more than the default", SetTenant{tenantA, []QuotaValue{{QuotaGalleries, 0}, {QuotaApplications, 0}}}, Done)
	f("a further gallery", sized(tenantA, 12, 0), Done)
	f("an unknown tenant's quotas", SetTenant{id.Tenant{UUID: id.UUID{9}}, nil}, UnknownTenant)
}

// A log of an earlier level has the effect that it had. What a tenant had beyond its quotas
// stays.
func TestRaisedLevelKeepsExcess(t *testing.T) {
	t.Parallel()
	m := tenants(t, LevelQuotas-1)
	f := expecting(t, m)
	huge := sized(tenantA, 2, 1<<31-1)
	f("a gallery beyond the default", huge, Done)
	f("another", sized(tenantA, 4, 1<<31-1), Done)
	for n := range byte(9) {
		f("a key", testKey(tenantA, fmt.Sprint(n), KeyLive), Done)
	}
	f("the next level", RaiseLevel{LevelQuotas}, Done)
	if used := m.Used()[tenantA]; used[QuotaSubjects] != 2*(1<<31-1) || used[QuotaAccessKeys] != 9 || used[QuotaChanges] != 0 {
		t.Errorf("used %v", used)
	}
	f("one subject more", sized(tenantA, 6, 1), OverSubjects)
	f("a key more", testKey(tenantA, "new", KeyLive), OverAccessKeys)
	f("a change of a key that it has", PutAccessKey{AccessKey{ID: "0", Tenant: tenantA, Role: 2, SealedSecret: []byte{1}}}, Done)
	size, name := uint32(1<<31-1), "renamed"
	f("the same size", UpdateGallery{Write: testWrite(50), Tenant: tenantA, Gallery: huge.Gallery.ID, Size: &size, Name: &name}, Done)
	f("slots of it", Grant{Gallery: huge.Gallery.ID, Generation: 1, Shard: 1, Want: 9}, Done)
	f("another tenant's gallery", sized(tenantB, 8, 100), Done)
}

// Older software can't read a gallery with a retention, subject templates or a photo link, or an application
// with a rule on faces or a review band.
func TestOldLevelLoadsNoNewSettings(t *testing.T) {
	t.Parallel()
	f := func(level uint32, set func(*Gallery, *Application), want ...Status) {
		t.Helper()
		m := New()
		status(t, m, RaiseLevel{level})
		status(t, m, CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "a"}})
		g, a := testCreation(2, 1).Gallery, testCreation(2, 1).Application
		a.Gallery = g.ID
		set(&g, &a)
		for i, records := range [][][]byte{nil, {Copied{Gallery: &g}.Encode()}, {Copied{Application: &a}.Encode()}} {
			load := Load{Backup: [32]byte{9}, Records: records, Have: uint64(max(i, 1) - 1)}
			if got := status(t, m, load); i > 0 && got != want[i-1] {
				t.Errorf("level %d, record %d: %v, want %v", level, i, got, want[i-1])
			}
			if i > 0 && want[i-1] != Done {
				return
			}
		}
	}
	none := func(*Gallery, *Application) {}
	retention := func(g *Gallery, _ *Application) { g.RetentionDays = 30 }
	templates := func(g *Gallery, _ *Application) { g.SubjectTemplates = true }
	link := func(g *Gallery, _ *Application) { g.PhotoLink = "https://hr.example/{externalId}" }
	purpose := func(g *Gallery, _ *Application) { g.Purpose = "entry" }
	ground := func(g *Gallery, _ *Application) { g.LegalGround = "consent" }
	recipients := func(g *Gallery, _ *Application) { g.Recipients = "the police" }
	rule := func(_ *Gallery, a *Application) { a.MultipleFaces = 1 }
	band := func(_ *Gallery, a *Application) { a.ReviewThreshold = 6000 }
	f(LevelSubjects-1, none, Done, Done)
	f(LevelSubjects-1, retention, Conflict)
	f(LevelSubjects-1, templates, Conflict)
	f(LevelSubjects-1, link, Conflict)
	f(LevelSubjects-1, rule, Done, Conflict)
	f(LevelReview-1, band, Done, Conflict)
	f(LevelPurpose-1, purpose, Conflict)
	f(LevelPurpose-1, ground, Conflict)
	f(LevelPurpose-1, recipients, Conflict)
	for _, set := range []func(*Gallery, *Application){retention, templates, link, purpose, ground, recipients, rule, band} {
		f(LevelSubjects, set, Done, Done)
	}
}

// Older software can't read a tenant with quotas, whether or not it knows the tenant.
func TestOldLevelLoadsNoQuotas(t *testing.T) {
	t.Parallel()
	quota := QuotaJobs
	f := func(level uint32, who id.Tenant, name string, want Status) {
		t.Helper()
		m := NewKnowing(level)
		c := Copied{Tenant: &Tenant{ID: who, Name: name, Quotas: []QuotaValue{{quota, 3}}}}
		load := Load{Backup: [32]byte{9}, Records: [][]byte{c.Encode()}}
		var got Status
		for _, c := range []any{RaiseLevel{level}, CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "a"}}} {
			status(t, m, c)
		}
		for _, c := range []Load{{Backup: load.Backup}, load} {
			got = status(t, m, c)
		}
		if got != want {
			t.Errorf("level %d, tenant %s: %v, want %v", level, name, got, want)
		}
	}
	f(LevelQuotas-1, tenantA, "a", Conflict)
	f(LevelQuotas-1, tenantB, "b", Conflict)
	f(LevelQuotas, tenantA, "a", Done)
	f(LevelQuotas, tenantB, "b", Done)
	quota = QuotaAuditRecords
	f(LevelAudit-1, tenantA, "a", Conflict)
	f(LevelAudit, tenantB, "b", Done)
}

// Software without audit logs can't read a tenant with a former log, and no backup has a larger checkpoint.
func TestFormerLogIsLoadedWithinBounds(t *testing.T) {
	t.Parallel()
	f := func(level uint32, size int, want Status) {
		t.Helper()
		m := NewKnowing(level)
		status(t, m, RaiseLevel{level})
		c := Copied{Tenant: &Tenant{ID: tenantA, Name: "a", Audit: Audit{Former: make([]byte, size)}}}
		var got Status
		for _, c := range []Load{{Backup: [32]byte{9}}, {Backup: [32]byte{9}, Records: [][]byte{c.Encode()}}} {
			got = status(t, m, c)
		}
		if got != want || want == Done && len(AuditOf(m, tenantA).Former) != size {
			t.Errorf("level %d, %d bytes: %v, want %v", level, size, got, want)
		}
	}
	f(LevelAudit-1, 300, Conflict)
	f(LevelAudit, 300, Done)
	f(LevelAudit, FormerMax, Done)
	f(LevelAudit, FormerMax+1, Conflict)
}

func TestQuotasHaveNamesAndValues(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, q := range Quotas() {
		again, ok := QuotaNamed(q.String())
		most, own := Tenant{}.Most(q)
		if !ok || again != q || seen[q.String()] || most == 0 || most > QuotaMax || own {
			t.Errorf("quota %d is %q: %v, %v; default %d", q, q, again, ok, most)
		}
		seen[q.String()] = true
	}
	if _, ok := QuotaNamed(""); ok || len(seen) != 11 {
		t.Errorf("%d quotas, or one without a name", len(seen))
	}
}
