package shardfsm

import (
	"os"
	"path/filepath"
	"testing"

	"facet/raftfsm"
)

func TestOnlyDamagedSegmentIsSentAgain(t *testing.T) {
	t.Parallel()
	c := &trio{t: t, dir: t.TempDir(), fatal: make(chan error, 4)}
	leader, state := c.open("member-a")
	if err := leader.Bootstrap([]raftfsm.Server{{Member: "member-a", Voter: true}}); err != nil {
		t.Fatal(err)
	}
	settle(t, leader)
	if _, err := leader.Propose(t.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 5000})); err != nil {
		t.Fatal(err)
	}
	c.enrol(leader, 0, 1000)
	c.snapshot(leader)
	c.add(leader, "member-b")
	member, _ := c.open("member-b")
	begin := c.sent.Load()
	c.wait(leader, member)
	whole := c.sent.Load() - begin
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}

	folder, aside := filepath.Join(c.dir, "member-b"), filepath.Join(c.dir, "aside")
	names, err := filepath.Glob(filepath.Join(folder, "segments", "*.seg"))
	if err != nil || len(names) < 8 {
		t.Fatalf("segments %v, %v; want 8 or more", names, err)
	}
	damaged := names[3]
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	b[300] ^= 1 // in a sealed face
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder, aside); err != nil {
		t.Fatal(err)
	}
	if n, err := raftfsm.SalvageSegments(aside, folder); err != nil || n != len(names)-1 {
		t.Fatalf("%d segments of %d are sound, %v", n, len(names), err)
	}
	begin = c.sent.Load()
	member, copied := c.open("member-b")
	c.wait(leader, member)
	sent := c.sent.Load() - begin
	if size := int64(len(b)); copied.Digest() != state.Digest() || sent < size || sent > 2*size+whole/10 {
		t.Errorf("%d bytes were sent for a segment of %d, %d for all; digest %x, want %x", sent, size, whole, copied.Digest(), state.Digest())
	}
	checkSealed(t, copied, 1000)
	select {
	case err := <-c.fatal:
		t.Error(err)
	default:
	}
}
