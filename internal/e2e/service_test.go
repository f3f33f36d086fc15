package e2e

import (
	"strings"
	"testing"
)

func TestEveryNodeServesEveryRequest(t *testing.T) {
	k := shared(t).client(t, 10)
	registered := k.register(t, 0, obama)

	var found candidates
	k.post(t, 2, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).Want(t, 200, &found)
	if len(found.Candidates) != 1 || found.Candidates[0].ID != registered.ID || found.Candidates[0].Score < 7000 {
		t.Errorf("another photo of the same person: got %+v, want %s", found, registered.ID)
	}
	for _, stranger := range []string{biden, collins} {
		k.post(t, 1, "/v1.1/face/search", map[string]any{"probe": encoded(t, stranger)}).Want(t, 404, &found)
		if len(found.Candidates) != 0 {
			t.Errorf("%s: got %+v, want nobody", stranger, found)
		}
	}
	var v struct{ Score int }
	verify := map[string]any{"id": registered.ID, "probe": encoded(t, obama)}
	k.post(t, 1, "/v1.1/face/verify", verify).Want(t, 200, &v)
	if v.Score != 9999 {
		t.Errorf("the same photo: score %d, want 9999", v.Score)
	}
	verify["probe"] = encoded(t, biden)
	k.post(t, 2, "/v1.1/face/verify", verify).Want(t, 404, &v)
	if v.Score >= 7000 {
		t.Errorf("another person: score %d", v.Score)
	}

	var l listing
	k.get(t, 1, "/v1.1/subjects").Want(t, 200, &l)
	if l.Total != 1 || l.Subjects[0].ID != registered.ID || l.Subjects[0].EventID != registered.EventID || l.Subjects[0].Status != "A" {
		t.Errorf("list: got %+v", l)
	}
	k.call(t, 2, "DELETE", "/v1.1/subjects/"+registered.ID, nil).Want(t, 204, nil)
	k.get(t, 0, "/v1.1/subjects").Want(t, 200, &l)
	if l.Total != 1 || l.Subjects[0].Status != "D" {
		t.Errorf("list after unregister: got %+v", l)
	}
	k.post(t, 0, "/v1.1/face/search", map[string]any{"probe": encoded(t, obama)}).Want(t, 404, nil)
	k.call(t, 0, "DELETE", "/v1.1/subjects/"+registered.ID, nil).Want(t, 404, nil)
}

func TestTenantReachesOnlyOwnData(t *testing.T) {
	c := shared(t)
	k := c.client(t, 10)
	k.register(t, 0, obama)
	other := c.keyless(t).with(tenantOf(t, c, "other-"+strings.ToLower(t.Name())))
	var galleries struct{ Galleries []struct{ ID string } }
	other.get(t, 1, "/api/galleries").Want(t, 200, &galleries)
	if len(galleries.Galleries) != 0 {
		t.Errorf("another tenant sees %+v", galleries)
	}
	other.APIKey = k.APIKey
	var refusal struct{ Message string }
	other.get(t, 2, "/v1.1/subjects").Want(t, 403, &refusal)
	if refusal.Message != "Forbidden" {
		t.Errorf("another tenant's API key: got %q", refusal.Message)
	}
}
