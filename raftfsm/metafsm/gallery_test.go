package metafsm

import (
	"bytes"
	"fmt"
	"testing"

	"facet/internal/must"
	"facet/internal/settings"
	"facet/raftfsm/fsmtest"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

// tagger changes the tags of galleryA, each time as a new operation.
type tagger struct {
	t   testing.TB
	m   *Machine
	ops int
}

func (g *tagger) write() Write {
	g.ops++
	return Write{Op: id.Operation{0xff, byte(g.ops >> 8), byte(g.ops)}, Time: 1_700_000_100_000}
}

func (g *tagger) expect(want Status, got TagAnswer, err error) uint32 {
	g.t.Helper()
	if err != nil || got.Status != want {
		g.t.Fatalf("got %v, %v, want %v", got.Status, err, want)
	}
	return got.Identity
}

func (g *tagger) create(name string, want Status) uint32 {
	g.t.Helper()
	a, err := CreateTagOp.Answer(g.m.Apply(1, CreateTagOp.Encode(CreateTag{g.write(), galleryA, name})))
	return g.expect(want, a, err)
}

func (g *tagger) rename(from, to string, want Status) uint32 {
	g.t.Helper()
	a, err := RenameTagOp.Answer(g.m.Apply(1, RenameTagOp.Encode(RenameTag{g.write(), galleryA, from, to})))
	return g.expect(want, a, err)
}

func (g *tagger) delete(name string, want Status) uint32 {
	g.t.Helper()
	a, err := DeleteTagOp.Answer(g.m.Apply(1, DeleteTagOp.Encode(DeleteTag{g.write(), galleryA, name})))
	return g.expect(want, a, err)
}

// founded returns a machine with galleryA, which has no tags.
func founded(t testing.TB) *Machine {
	t.Helper()
	m := New()
	for i, c := range script()[:6] {
		m.Apply(uint64(i+1), encode(c))
	}
	if _, ok := m.Gallery(galleryA); !ok {
		t.Fatal("there is no gallery")
	}
	return m
}

func TestTagKeepsIdentity(t *testing.T) {
	t.Parallel()
	g := &tagger{t: t, m: founded(t)}
	a, b := g.create("a", Done), g.create("b", Done)
	if a == b || a == 0 || b == 0 {
		t.Fatalf("identities %d and %d", a, b)
	}
	if got := g.rename("a", "c", Done); got != a {
		t.Errorf("renamed: identity %d, want %d", got, a)
	}
	g.rename("c", "b", Exists)
	g.rename("a", "d", UnknownTag)
	g.create("b", Exists)
	if got := g.rename("b", "b", Done); got != b {
		t.Errorf("renamed to itself: identity %d, want %d", got, b)
	}
	g.delete("b", Done)
	g.delete("b", UnknownTag)
	if _, ok := g.m.TagIdentity(galleryA, "b"); ok {
		t.Error("a deleted tag is known")
	}
	if got := g.create("fresh", Done); got == a || got == b {
		t.Errorf("a new name inherits identity %d", got)
	}
	if got := g.create("b", Done); got != b {
		t.Errorf("revived: identity %d, want %d", got, b)
	}
	// A dormant label whose name is taken is forgotten.
	g.delete("b", Done)
	g.rename("c", "b", Done)
	g.delete("b", Done)
	if got := g.create("b", Done); got != a {
		t.Errorf("the name that was taken over: identity %d, want %d", got, a)
	}
	want := []Tag{{"fresh", 3}, {"b", a}}
	if diff := cmp.Diff(want, g.m.Tags(galleryA)); diff != "" {
		t.Errorf("tags in order of creation (-want +got):\n%s", diff)
	}
}

func TestTagsAreBounded(t *testing.T) {
	t.Parallel()
	g := &tagger{t: t, m: founded(t)}
	for n := range TagsMax {
		g.create(fmt.Sprint("tag ", n), Done)
	}
	g.create("one more", TagLimit)
	g.create("tag 0", Exists)
	g.delete("tag 0", Done)
	for n := range DormantTagsMax {
		name := fmt.Sprint("dormant ", n)
		g.create(name, Done)
		g.delete(name, Done)
	}
	// tag 0 was the oldest of DormantTagsMax+1.
	if got := g.create("tag 0", Done); got != TagsMax+DormantTagsMax+1 {
		t.Errorf("the label that was forgotten: identity %d", got)
	}
	g.delete("tag 0", Done)
	if got := g.create("dormant 1", Done); got != TagsMax+2 {
		t.Errorf("a label that was kept: identity %d, want %d", got, TagsMax+2)
	}
	restored := New()
	must.Do(t, restored.Restore(bytes.NewReader(fsmtest.Snapshot(t, g.m))))
	if restored.Digest() != g.m.Digest() {
		t.Error("a snapshot holds other tags")
	}
}

func TestDeletedGalleryIsUnknownAtOnce(t *testing.T) {
	t.Parallel()
	m := founded(t)
	other := testCreation(50, 9)
	other.Gallery.Name = "gallery"
	create := func(write byte) Status {
		other.Write = testWrite(write)
		return status(t, m, other)
	}
	if got := create(50); got != Exists {
		t.Fatalf("a second gallery of the name: %v", got)
	}
	a, err := DeleteGalleryOp.Answer(m.Apply(1, DeleteGalleryOp.Encode(DeleteGallery{testWrite(51), tenantA, galleryA})))
	if err != nil || a.Status != Done || a.Gallery.Generation != 2 || a.Gallery.WrappedKey != nil {
		t.Fatalf("delete: %+v, %v", a, err)
	}
	if _, ok := m.ApplicationByMAC(testApplication(1).KeyMAC); ok {
		t.Error("its key is known")
	}
	if _, ok := m.Gallery(galleryA); ok {
		t.Error("it is known")
	}
	grant := Grant{Gallery: galleryA, Generation: 2, Shard: 1, Want: 1}
	if got := status(t, m, grant); got != UnknownGallery {
		t.Errorf("slots of it: %v", got)
	}
	if got := create(52); got != BeingDeleted {
		t.Errorf("its name, before the shards are fenced: %v", got)
	}
	forget := func(generation uint32) Status {
		return status(t, m, ForgetGallery{galleryA, generation})
	}
	if got := forget(1); got != StaleGeneration {
		t.Errorf("forget another generation: %v", got)
	}
	if got := m.Deleting(); len(got) != 1 || got[0].ID != galleryA {
		t.Errorf("being deleted: %+v", got)
	}
	for range 2 {
		if got := forget(2); got != Done {
			t.Errorf("forget: %v", got)
		}
	}
	if got := create(53); got != Done {
		t.Errorf("its name, in the end: %v", got)
	}
}

func TestNewShardsGetSlotsOnceSettled(t *testing.T) {
	t.Parallel()
	m := founded(t)
	shards := ShardsOf(galleryA, 3, 16)
	grant := func(s id.Shard) Status {
		c := Grant{Gallery: galleryA, Generation: 1, Shard: s, Want: 1}
		return status(t, m, c)
	}
	grow := func(write byte, size uint32, shards int) Gallery {
		a, err := UpdateGalleryOp.Answer(m.Apply(1, UpdateGalleryOp.Encode(UpdateGallery{
			Write: testWrite(write), Tenant: tenantA, Gallery: galleryA, Change: settings.ChangeTo(settings.Gallery{Size: size}, "size"), Shards: shards,
		})))
		if err != nil || a.Status != Done {
			t.Fatalf("grow: %v, %v", a.Status, err)
		}
		return a.Gallery
	}
	settle := func(epoch uint32) Status {
		return status(t, m, Settle{galleryA, 1, epoch})
	}
	grow(20, 1000, 2)
	last := grow(21, 2000, 3)
	for i, want := range []Status{Done, Unsettled, Unsettled} {
		if got := grant(shards[i]); got != want {
			t.Errorf("shard %d of a gallery that grew from 1 to 3: %v, want %v", i, got, want)
		}
	}
	if got := settle(last.Epoch - 1); got != StaleEpoch {
		t.Errorf("settle an earlier epoch: %v", got)
	}
	if got := settle(last.Epoch); got != Done {
		t.Errorf("settle: %v", got)
	}
	for i, s := range shards {
		if got := grant(s); got != Done {
			t.Errorf("shard %d of a settled gallery: %v", i, got)
		}
	}
	if after := grow(22, 2000, 1); after.Epoch != last.Epoch || after.Shards != 3 {
		t.Errorf("the same size: %+v", after)
	}
}
