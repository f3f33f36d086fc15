package client_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"facet.internal/client"
)

func TestUpdates(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 10)
	_, err := c.Update(ctx, "nobody", client.Photo{Image: photo(t, obama)})
	refused(t, err, client.ErrNotFound)
	made, err := c.Register(ctx, client.Photo{Image: photo(t, biden)})
	must(t, err)
	updated, err := c.Update(ctx, made.ID, client.Photo{Image: photo(t, obama)})
	must(t, err)
	if updated.ID != made.ID || updated.EventID != made.EventID {
		t.Errorf("made %+v, updated %+v", made, updated)
	}
	_, err = c.VerifySubject(ctx, made.ID, photo(t, biden))
	refused(t, err, client.ErrNotVerified)
	v1, err := c.V1().Update(ctx, made.ID, photo(t, biden))
	must(t, err)
	if _, err = c.VerifySubject(ctx, v1.ID, photo(t, biden)); err != nil {
		t.Error(err)
	}
}

func TestEvents(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 10)
	_, err := c.Events(ctx, "nobody")
	refused(t, err, client.ErrNotFound)
	made, err := c.Register(ctx, client.Photo{Image: photo(t, obama)})
	must(t, err)
	second, err := c.RegisterEvent(ctx, made.ID, client.Photo{Image: photo(t, anotherObama)})
	must(t, err)
	ids, err := c.Events(ctx, made.ID)
	must(t, err)
	if want := []string{made.EventID, second.EventID}; second.ID != made.ID || !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(want))) {
		t.Errorf("got %v, want %v", ids, want)
	}
	changed, err := c.UpdateEvent(ctx, made.ID, second.EventID, client.Photo{Image: photo(t, biden)})
	must(t, err)
	if changed.EventID != second.EventID {
		t.Errorf("got %+v", changed)
	}
	must(t, c.UnregisterEvent(ctx, made.ID, second.EventID))
	refused(t, c.UnregisterEvent(ctx, made.ID, second.EventID), client.ErrNotFound)
	must(t, c.UnregisterEvent(ctx, made.ID, made.EventID)) // its last one
	_, err = c.Events(ctx, made.ID)
	refused(t, err, client.ErrNotFound)
}

func TestTags(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 10)
	_, err := c.Tags(ctx)
	must(t, err)
	names := []string{"night shift", "a/b", "100%25", "für+alle", "?&=#"}
	for _, n := range names {
		must(t, c.CreateTag(ctx, n))
	}
	refused(t, c.CreateTag(ctx, names[1]), client.ErrDuplicate)
	got, err := c.Tags(ctx)
	must(t, err)
	if !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
	made, err := c.Register(ctx, client.Photo{Image: photo(t, obama), Tags: names[1:3]})
	must(t, err)
	must(t, c.RenameTag(ctx, "a/b", "b/a"))
	for tag, want := range map[string]int{"b/a": 1, "100%25": 1, "?&=#": 0} {
		found, err := c.Search(ctx, client.SearchQuery{Probe: photo(t, obama), Tags: []string{tag}})
		must(t, err)
		if len(found.Candidates) != want || want == 1 && found.Candidates[0].ID != made.ID {
			t.Errorf("%q: found %+v", tag, found)
		}
	}
	must(t, c.DeleteTag(ctx, "b/a"))
	refused(t, c.DeleteTag(ctx, "b/a"), client.ErrNotFound)
	refused(t, c.RenameTag(ctx, "b/a", "x"), client.ErrNotFound)
	_, err = c.Search(ctx, client.SearchQuery{Probe: photo(t, obama), Tags: []string{"b/a"}})
	refused(t, err, client.ErrUnknownTag)
}

func TestBulkRegistration(t *testing.T) {
	ctx := t.Context()
	c, g := gallery(t, 10)
	_, err := c.BulkProgress(ctx, "no such batch", "")
	refused(t, err, client.ErrNotFound)
	bucket := readDev(t).BucketDir
	for _, name := range []string{obama, rocket} {
		must(t, os.WriteFile(filepath.Join(bucket, filepath.Base(name)), photo(t, name), 0o600))
	}
	batch, err := c.BulkRegister(ctx, []client.BulkItem{{Filename: "obama.jpg"}, {Filename: "rocket.jpg"}, {Filename: "missing.jpg"}})
	must(t, err)
	want := map[string]string{"obama.jpg": "Success", "rocket.jpg": "Failed", "missing.jpg": "Failed"}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		done := 0
		for r, err := range c.BulkRecords(ctx, batch) {
			must(t, err)
			if r.Status != "Processed" {
				continue
			}
			done++
			if _, ok, err := r.Attributes(); r.RegisterStatus != want[r.Filename] || err != nil || ok != (r.SubjectID != "") {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		if done == len(want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d records are processed", done, len(want))
		}
	}
	g, err = c.Gallery(ctx, g.ID)
	must(t, err)
	if g.Count != 1 {
		t.Errorf("the gallery has %d events, want 1", g.Count)
	}
}

func TestGalleriesAreChangedAndDeleted(t *testing.T) {
	ctx := t.Context()
	c, g := gallery(t, 10)
	_, err := c.UpdateGallery(ctx, "no-such-gallery", client.GalleryChange{Size: new(20)})
	refused(t, err, client.ErrNotFound)
	changed, err := c.UpdateGallery(ctx, g.ID, client.GalleryChange{Size: new(20), Description: new("larger")})
	must(t, err)
	if changed.Size != 20 || changed.Description != "larger" || changed.Name != g.Name {
		t.Errorf("got %+v", changed)
	}
	_, err = c.UpdateGallery(ctx, g.ID, client.GalleryChange{Size: new(19)})
	refused(t, err, client.ErrInvalidRequest)
	a, err := c.CreateApplication(ctx, client.NewApplication{Name: "door", FaceMinimumQualityScore: .6, GalleryID: g.ID})
	must(t, err)
	a2, err := c.UpdateApplication(ctx, a.ID, client.ApplicationChange{VerifyThreshold: new(9000)})
	must(t, err)
	seen := a.ETag
	if a.VerifyThreshold, a.ETag = 9000, a2.ETag; a2 != a || a2.ETag == seen {
		t.Errorf("got %+v, want %+v", a2, a)
	}
	_, err = c.UpdateApplication(ctx, a.ID, client.ApplicationChange{FaceMinimumQualityScore: new(.7), IfMatch: seen})
	refused(t, err, client.ErrOtherSettings)
	a2, err = c.UpdateApplication(ctx, a.ID, client.ApplicationChange{FaceMinimumQualityScore: new(.7), IfMatch: a2.ETag})
	must(t, err)
	if read, err := c.Application(ctx, a.ID); err != nil || read != a2 || read.VerifyThreshold != 9000 {
		t.Errorf("got %+v, %v, want %+v", read, err, a2)
	}
	_, err = c.UpdateGallery(ctx, g.ID, client.GalleryChange{Size: new(30), IfMatch: g.ETag})
	refused(t, err, client.ErrOtherSettings)
	_, err = c.UpdateGallery(ctx, g.ID, client.GalleryChange{Size: new(30), IfMatch: changed.ETag})
	must(t, err)
	must(t, c.DeleteApplication(ctx, a.ID))
	refusedSoon(t, client.ErrForbidden, func() error {
		_, err := c.WithAPIKey(a.APIKey).Subjects(ctx, client.Page{})
		return err
	})
	must(t, c.DeleteGallery(ctx, g.ID))
	for range 6 { // on every node, and at once
		_, err = c.Subjects(ctx, client.Page{})
		refused(t, err, client.ErrForbidden)
	}
	refusedSoon(t, client.ErrNotFound, func() error {
		_, err := c.Gallery(ctx, g.ID)
		return err
	})
}

func TestExpiry(t *testing.T) {
	ctx := t.Context()
	c, g := gallery(t, 10)
	at := time.Date(2199, 1, 31, 12, 0, 0, 5e8, time.UTC)
	made, err := c.Register(ctx, client.Photo{Image: photo(t, obama), Expires: at})
	must(t, err)
	_, err = c.Register(ctx, client.Photo{Image: photo(t, biden), Expires: time.Now().Add(-time.Hour)})
	refused(t, err, client.ErrInvalidRequest)
	list, err := c.Expiring(ctx, at.Add(time.Millisecond), client.Page{})
	must(t, err)
	if list.Total != 1 || len(list.Subjects) != 1 || list.Subjects[0].ID != made.ID || !list.Subjects[0].Expires.Equal(at) {
		t.Errorf("would go: %+v", list)
	}
	if events, err := c.ListEvents(ctx, made.ID); err != nil || len(events) != 1 || events[0].ID != made.EventID || !events[0].Expires.Equal(at) {
		t.Errorf("events: %+v, %v", events, err)
	}
	_, err = c.Update(ctx, made.ID, client.Photo{Image: photo(t, obama), NoExpiry: true})
	must(t, err)
	if list, err = c.Expiring(ctx, at.Add(time.Millisecond), client.Page{}); err != nil || len(list.Subjects) != 0 {
		t.Errorf("without a time would go: %+v, %v", list, err)
	}
	changed, err := c.UpdateGallery(ctx, g.ID, client.GalleryChange{RetentionDays: new(30)})
	must(t, err)
	list, err = c.Expiring(ctx, time.Now().AddDate(0, 0, 31), client.Page{Length: 1})
	must(t, err)
	if e := list.Subjects[0]; changed.RetentionDays != 30 || e.Expires.Sub(e.LastUpdated) != 30*24*time.Hour {
		t.Errorf("with a retention: %+v, %+v", changed, list)
	}
	second, err := c.Register(ctx, client.Photo{Image: photo(t, biden), Expires: time.Now().Add(time.Second)})
	must(t, err)
	refusedSoon(t, client.ErrNotFound, func() error {
		_, err := c.Events(ctx, second.ID)
		return err
	})
}

// refusedSoon waits until all nodes refuse do. Each learns of a change on its own.
func refusedSoon(t *testing.T, kind error, do func() error) {
	t.Helper()
	for late, row := time.Now().Add(5*time.Second), 0; row < 6; row++ {
		if err := do(); !errors.Is(err, kind) {
			row = 0
			if time.Now().After(late) {
				t.Fatalf("got %v, want %v", err, kind)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func TestExternalIDs(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 10)
	made, err := c.Register(ctx, client.Photo{Image: photo(t, obama), ExternalID: new("staff/ü 1"), UserData: json.RawMessage(`{"shift":2}`)})
	must(t, err)
	_, err = c.Register(ctx, client.Photo{Image: photo(t, biden), ExternalID: new("staff/ü 1")})
	refused(t, err, client.ErrDuplicate)
	list, err := c.SubjectsWith(ctx, "staff/ü 1")
	must(t, err)
	if len(list.Subjects) != 1 || list.Subjects[0].ID != made.ID || list.Subjects[0].ExternalID != "staff/ü 1" || string(list.Subjects[0].UserData) != `{"shift":2}` {
		t.Errorf("listed %+v", list)
	}
	named := client.External("staff/ü 1")
	if s, err := c.Subject(ctx, made.ID); err != nil || s.ExternalID != "staff/ü 1" || string(s.UserData) != `{"shift":2}` || len(s.Events) != 1 {
		t.Errorf("the subject is %+v, %v", s, err)
	}
	verified, err := c.Verify(ctx, named, photo(t, anotherObama))
	must(t, err)
	found, err := c.Search(ctx, client.SearchQuery{Probe: photo(t, anotherObama)})
	must(t, err)
	if verified.ID != made.ID || len(found.Candidates) != 1 || found.Candidates[0].ExternalID != verified.ExternalID || verified.ExternalID != "staff/ü 1" {
		t.Errorf("verified %+v, found %+v", verified, found.Candidates)
	}
	_, err = c.Update(ctx, named, client.Photo{Image: photo(t, obama), ExternalID: new("")})
	must(t, err)
	refused(t, c.Unregister(ctx, named), client.ErrNotFound)
	if list, err = c.SubjectsWith(ctx, "staff/ü 1"); err != nil || len(list.Subjects) != 0 {
		t.Errorf("after the id was removed: %+v, %v", list, err)
	}
}
