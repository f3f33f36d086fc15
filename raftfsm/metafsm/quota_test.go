package metafsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/settings"
)

var tenantB = id.Tenant{UUID: id.UUID{0xa, 0xb}}

// quotaScript makes two tenants, sets quotas of one and goes to them and beyond.
func quotaScript() []any {
	return []any{
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
	again := New()
	keepsBytes(t, New(), again, "quotas.txt", quotaScript())
	used := map[Quota]uint64{QuotaSubjects: 10, QuotaGalleries: 1, QuotaApplications: 1, QuotaAccessKeys: 0, QuotaChanges: 2}
	if diff := cmp.Diff(used, again.Used()[tenantA]); diff != "" {
		t.Errorf("used after a restart (-want +got):\n%s", diff)
	}
}

// tenants returns a machine with two tenants. The first has these quotas.
func tenants(t testing.TB, first ...QuotaValue) *Machine {
	t.Helper()
	m := New()
	commands := []any{
		CreateTenant{testWrite(100), Tenant{ID: tenantA, Name: "a"}},
		CreateTenant{testWrite(101), Tenant{ID: tenantB, Name: "b"}},
		SetTenant{tenantA, first},
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
	f := expecting(t, tenants(t,
		QuotaValue{QuotaSubjects, 30}, QuotaValue{QuotaGalleries, 2}, QuotaValue{QuotaApplications, 3}, QuotaValue{QuotaAccessKeys, 1}, QuotaValue{QuotaChanges, 4},
	))
	first := sized(tenantA, 2, 20)
	grown := func(n byte, size uint32) UpdateGallery {
		return UpdateGallery{Write: testWrite(n), Tenant: tenantA, Gallery: first.Gallery.ID, Change: settings.ChangeTo(settings.Gallery{Size: size}, "size"), Shards: 1}
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

// What a tenant has beyond a quota that is lowered stays.
func TestLoweredQuotaKeepsExcess(t *testing.T) {
	t.Parallel()
	m := tenants(t, QuotaValue{QuotaSubjects, QuotaMax}, QuotaValue{QuotaAccessKeys, 9})
	f := expecting(t, m)
	huge := sized(tenantA, 2, 1<<31-1)
	f("a gallery beyond the default", huge, Done)
	f("another", sized(tenantA, 4, 1<<31-1), Done)
	for n := range byte(9) {
		f("a key", testKey(tenantA, fmt.Sprint(n), KeyLive), Done)
	}
	f("the defaults", SetTenant{tenantA, []QuotaValue{{QuotaSubjects, 0}, {QuotaAccessKeys, 0}}}, Done)
	if used := m.Used()[tenantA]; used[QuotaSubjects] != 2*(1<<31-1) || used[QuotaAccessKeys] != 9 || used[QuotaChanges] != 2 {
		t.Errorf("used %v", used)
	}
	f("one subject more", sized(tenantA, 6, 1), OverSubjects)
	f("a key more", testKey(tenantA, "new", KeyLive), OverAccessKeys)
	f("a change of a key that it has", PutAccessKey{AccessKey{ID: "0", Tenant: tenantA, Role: 2, SealedSecret: []byte{1}}}, Done)
	f("the same size", UpdateGallery{Write: testWrite(50), Tenant: tenantA, Gallery: huge.Gallery.ID, Change: settings.ChangeTo(settings.Gallery{Size: 1<<31 - 1, Name: "renamed"}, "size", "name")}, Done)
	f("slots of it", Grant{Gallery: huge.Gallery.ID, Generation: 1, Shard: 1, Want: 9}, Done)
	f("another tenant's gallery", sized(tenantB, 8, 100), Done)
}

// No backup has a larger checkpoint than FormerMax.
func TestFormerLogIsLoadedWithinBounds(t *testing.T) {
	t.Parallel()
	f := func(size int, want Status) {
		t.Helper()
		m := New()
		c := Copied{Tenant: &Tenant{ID: tenantA, Name: "a", Audit: Audit{Former: make([]byte, size)}}}
		var got Status
		for _, c := range []Load{{Backup: [32]byte{9}}, {Backup: [32]byte{9}, Records: [][]byte{c.Encode()}}} {
			got = status(t, m, c)
		}
		if got != want || want == Done && len(AuditOf(m, tenantA).Former) != size {
			t.Errorf("%d bytes: %v, want %v", size, got, want)
		}
	}
	f(300, Done)
	f(FormerMax, Done)
	f(FormerMax+1, Conflict)
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
