package metafsm

import (
	"testing"

	"facet/internal/id"
	"facet/internal/settings"
)

// State machines of all versions must compute the same.
func TestETagNeverChanges(t *testing.T) {
	t.Parallel()
	g := Gallery{ID: galleryA, Gallery: settings.Gallery{Name: "staff", Description: "d", Size: 1000, RetentionDays: 30, PhotoLink: "https://hr.example/{externalId}", Purpose: "entry"}}
	if got, want := g.ETag(), "00ea54ff5b5ca0ec870569636d9a6c0d"; got != want {
		t.Errorf("gallery: got %s, want %s", got, want)
	}
	a := Application{ID: id.Application{UUID: id.UUID{1}}, Application: settings.Application{
		Name: "door", MinimumQuality: .45, VerifyThreshold: 7000, GuardThreshold: 7000, ReviewThreshold: 6000, ReviewVerdicts: 2,
	}}
	if got, want := a.ETag(), "9f07f7b7c7a0daece0b6b40473391e48"; got != want {
		t.Errorf("application: got %s, want %s", got, want)
	}
}

func TestUpdateOfOtherSettingsIsRefused(t *testing.T) {
	t.Parallel()
	m := founded(t)
	g, _ := m.Gallery(galleryA)
	a, ok := m.Application(testApplication(1).ID)
	if !ok {
		t.Fatal("there is no application")
	}
	gallery := func(write byte, description, match string, want Status) {
		t.Helper()
		c := UpdateGallery{Write: testWrite(write), Tenant: tenantA, Gallery: galleryA, Change: settings.ChangeTo(settings.Gallery{Description: description}, "description"), IfMatch: match}
		got, err := UpdateGalleryOp.Answer(m.Apply(1, UpdateGalleryOp.Encode(c)))
		if err != nil || got.Status != want {
			t.Errorf("%s: got %v, %v, want %v", description, got.Status, err, want)
		}
	}
	application := func(write byte, threshold int, match string, want Status) {
		t.Helper()
		c := UpdateApplication{Write: testWrite(write), Tenant: tenantA, Application: a.ID, Change: settings.ChangeTo(settings.Application{VerifyThreshold: threshold}, "verifyThreshold"), IfMatch: match}
		got, err := UpdateApplicationOp.Answer(m.Apply(1, UpdateApplicationOp.Encode(c)))
		if err != nil || got.Status != want {
			t.Errorf("%d: got %v, %v, want %v", threshold, got.Status, err, want)
		}
	}
	gallery(30, "first", g.ETag(), Done)
	gallery(31, "second", g.ETag(), OtherSettings)
	gallery(30, "first", g.ETag(), Replayed)
	gallery(31, "second", "", Done)
	application(40, 8000, a.ETag(), Done)
	application(41, 7500, a.ETag(), OtherSettings)
	application(40, 8000, a.ETag(), Replayed)
	application(41, 7500, "", Done)
}
