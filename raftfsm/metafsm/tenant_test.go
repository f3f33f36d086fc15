package metafsm

import (
	"bytes"
	"testing"

	"facet/raftfsm/fsmtest"

	"facet/internal/id"
	"facet/internal/settings"
)

// tenantScript makes two tenants, disables one, and deletes the other one, which has galleries.
func tenantScript() []any {
	return []any{
		CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "tenant"}},
		CreateTenant{testWrite(2), Tenant{ID: tenantB, Name: "other"}},
		PutAccessKey{AccessKey{ID: "key", Tenant: tenantA, Role: 1, SealedSecret: []byte{1}}},
		testCreation(3, 1),
		testCreation(5, 2),
		SetTenantState{tenantB, TenantDisabled},
		DeleteTenant{tenantA},
	}
}

func TestTenantStateBytesMatchFormat(t *testing.T) {
	t.Parallel()
	again := New()
	keepsBytes(t, New(), again, "tenants.txt", tenantScript())
	if a, b := again.TenantState(tenantA), again.TenantState(tenantB); a != TenantDeleting || b != TenantDisabled {
		t.Errorf("states %d and %d after a restart", a, b)
	}
}

// The last gallery takes the tenant with it. Until then the tenant gets nothing new.
func TestDeletedTenantGoesWithItsLastGallery(t *testing.T) {
	t.Parallel()
	m := New()
	f := func(want Status, c any) {
		t.Helper()
		if got := status(t, m, c); got != want {
			t.Errorf("%T: %v, want %v", c, got, want)
		}
	}
	for _, c := range tenantScript() {
		f(Done, c)
	}
	key := PutAccessKey{AccessKey{ID: "another", Tenant: tenantA, Role: 1, SealedSecret: []byte{1}}}
	f(UnknownTenant, key)
	f(UnknownTenant, testCreation(7, 3))
	f(BeingDeleted, SetTenantState{tenantA, TenantActive})
	f(Done, DeleteTenant{tenantA})
	f(Exists, CreateTenant{testWrite(8), Tenant{ID: id.Tenant{UUID: id.UUID{7}}, Name: "tenant"}})
	if _, ok := m.AccessKey("key"); ok || len(m.Applications(tenantA)) > 0 || len(m.Galleries(tenantA)) > 0 {
		t.Error("an access key, an application or a gallery is left")
	}
	deleting := m.Deleting()
	if len(deleting) != 2 {
		t.Fatalf("%d galleries are under deletion", len(deleting))
	}
	err := ReadAllCopied(bytes.NewReader(fsmtest.Snapshot(t, m)), func(c Copied) error {
		if c.Tenant != nil && c.Tenant.ID == tenantA || c.Gallery != nil || c.AccessKey != nil {
			t.Errorf("a backup has %+v", c)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	f(Done, ForgetGallery{deleting[0].ID, deleting[0].Generation})
	if got := len(m.Tenants()); got != 2 {
		t.Errorf("%d tenants with a gallery left", got)
	}
	f(Done, ForgetGallery{deleting[1].ID, deleting[1].Generation})
	if got := m.Tenants(); len(got) != 1 || got[0].ID != tenantB {
		t.Errorf("tenants %v without a gallery", got)
	}
	f(UnknownTenant, DeleteTenant{tenantA})
	f(UnknownTenant, CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "tenant"}}) // a retry
	f(Done, CreateTenant{testWrite(9), Tenant{ID: id.Tenant{UUID: id.UUID{7}}, Name: "tenant"}})
}

// A tenant's record of a backup has its state, and contradicts a tenant under deletion.
func TestRestorationKeepsTenantStates(t *testing.T) {
	t.Parallel()
	f := func(what string, before []any, restored Copied, want Status) {
		t.Helper()
		m := New()
		load := Load{Backup: [32]byte{1}}
		for i, c := range append(before, load) {
			m.Apply(uint64(i+1), encode(c))
		}
		load.Records = [][]byte{restored.Encode()}
		a, err := LoadOp.Answer(m.Apply(uint64(len(before)+2), encode(load)))
		if err != nil || a.Status != want {
			t.Errorf("%s: %v, %v, want %v", what, a.Status, err, want)
		}
		if want == Done && m.TenantState(restored.Tenant.ID) != restored.Tenant.State {
			t.Errorf("%s: it has another state", what)
		}
	}
	disabled, deleting := Tenant{ID: tenantA, Name: "a", State: TenantDisabled}, Tenant{ID: tenantA, Name: "a", State: TenantDeleting}
	f("disabled", nil, Copied{Tenant: &disabled}, Done)
	f("under deletion", nil, Copied{Tenant: &deleting}, Conflict)
	f("a tenant that is being deleted here", tenantScript(), Copied{Tenant: &Tenant{ID: tenantA, Name: "tenant"}}, Conflict)
	f("its gallery", tenantScript(), Copied{Gallery: &Gallery{ID: id.Gallery{UUID: id.UUID{9}}, Tenant: tenantA, Gallery: settings.Gallery{Name: "new"}}}, Conflict)
	f("its access key", tenantScript(), Copied{AccessKey: &AccessKey{ID: "new", Tenant: tenantA}}, Conflict)
}
