package fsmtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"facet/raftfsm"
)

// Case is one run of several replicas through one list of commands.
type Case struct {
	// Rand decides where replicas freeze, restart and compare.
	Rand *rand.Rand
	// New returns an empty machine.
	New func() raftfsm.Machine
	// Commands are applied at the indices 1, 2, ….
	Commands [][]byte
	// Answer, if set, is called with the answer to each command, in order.
	Answer func(index uint64, answer []byte)

	// answers has the answers of the steady replica.
	answers [][]byte
}

// replica is a machine and its disk. The disk holds one snapshot.
type replica struct {
	machine raftfsm.Machine
	// snapshot is the state at index at, with the given digest. nil is the empty state at
	// index 0.
	snapshot []byte
	at       uint64
	digest   [32]byte
	// frozen is the state at index frozenAt, which is not written to snapshot yet.
	frozen       raftfsm.Frozen
	frozenAt     uint64
	frozenDigest [32]byte
}

// The replicas by number.
const (
	steady   = iota // applies all commands one by one
	reborn          // is replaced by a machine restored from its own snapshot, at random
	replayed        // writes snapshots late, and restarts from the last one and the log
	fed             // misses commands, and then restores the snapshot of steady
	replicas
)

// Run applies the commands to all replicas and returns their machines. It fails t if two
// replicas differ in an answer or in a digest. The first machine was never restarted.
func Run(t testing.TB, c Case) []raftfsm.Machine {
	t.Helper()
	rs := make([]*replica, replicas)
	for i := range rs {
		rs[i] = &replica{machine: c.New()}
	}
	behind := false
	for i := range c.Commands {
		index := uint64(i + 1)
		want := c.apply(t, rs[steady], index)
		c.answers = append(c.answers, want)
		if c.Answer != nil {
			c.Answer(index, want)
		}
		behind = c.feed(t, rs, index, behind)
		c.applyAlike(t, rs[reborn], index)
		c.applyAlike(t, rs[replayed], index)
		c.disturb(t, rs, index)
	}
	if behind {
		install(t, rs[fed], rs[steady], uint64(len(c.Commands)))
	}
	c.compare(t, rs, uint64(len(c.Commands)), rs)
	return machines(rs)
}

func machines(rs []*replica) []raftfsm.Machine {
	out := make([]raftfsm.Machine, len(rs))
	for i, r := range rs {
		out[i] = r.machine
	}
	return out
}

// apply applies a command to a replica, and overwrites the command's bytes afterwards.
func (c Case) apply(t testing.TB, r *replica, index uint64) []byte {
	t.Helper()
	cmd := bytes.Clone(c.Commands[index-1])
	answer := r.machine.Apply(index, cmd)
	before := bytes.Clone(answer)
	for i := range cmd {
		cmd[i] = ^cmd[i]
	}
	if !bytes.Equal(before, answer) {
		t.Errorf("index %d: the answer is part of the command", index)
	}
	return answer
}

// applyAlike applies a command and compares the answer with that of steady.
func (c Case) applyAlike(t testing.TB, r *replica, index uint64) {
	t.Helper()
	if got, want := c.apply(t, r, index), c.answers[index-1]; !bytes.Equal(got, want) {
		t.Fatalf("index %d: a replica answers %x, the steady one %x", index, got, want)
	}
}

// feed applies a command to the fed replica, lets it miss the command, or restores the
// snapshot of steady into it. It reports whether the replica is behind.
func (c Case) feed(t testing.TB, rs []*replica, index uint64, behind bool) bool {
	t.Helper()
	switch {
	case behind && c.Rand.IntN(8) == 0:
		install(t, rs[fed], rs[steady], index)
		return false
	case behind || c.Rand.IntN(24) == 0:
		return true
	}
	c.applyAlike(t, rs[fed], index)
	return false
}

// disturb freezes, restarts and compares replicas at random.
func (c Case) disturb(t testing.TB, rs []*replica, index uint64) {
	t.Helper()
	if c.Rand.IntN(16) == 0 {
		next := c.New()
		restore(t, next, Snapshot(t, rs[reborn].machine), index)
		rs[reborn].machine = next
	}
	r := rs[replayed]
	switch c.Rand.IntN(12) {
	case 0:
		if r.frozen == nil {
			r.frozenDigest = r.machine.Digest()
			r.frozen, r.frozenAt = freeze(t, r.machine), index
		}
	case 1, 2:
		if r.frozen != nil {
			r.snapshot, r.at, r.digest = write(t, r.frozen), r.frozenAt, r.frozenDigest
			r.frozen = nil
		}
	case 3:
		r.machine, r.frozen = c.New(), nil
		if r.snapshot != nil {
			restore(t, r.machine, r.snapshot, r.at)
			if got := r.machine.Digest(); got != r.digest {
				t.Fatalf("index %d: a snapshot frozen at %d has digest %x, want %x", index, r.at, got, r.digest)
			}
		}
		for i := r.at + 1; i <= index; i++ {
			c.applyAlike(t, r, i)
		}
	}
	if c.Rand.IntN(16) == 0 {
		c.compare(t, rs, index, []*replica{rs[reborn], rs[replayed]})
	}
}

func (c Case) compare(t testing.TB, rs []*replica, index uint64, others []*replica) {
	t.Helper()
	want := rs[steady].machine.Digest()
	for i, r := range others {
		if got := r.machine.Digest(); got != want {
			t.Fatalf("index %d: digest of replica %d of %d is %x, the steady one's %x", index, i, len(others), got, want)
		}
	}
}

func install(t testing.TB, to, from *replica, index uint64) {
	t.Helper()
	restore(t, to.machine, Snapshot(t, from.machine), index)
}

// Snapshot returns a snapshot of m.
func Snapshot(t testing.TB, m raftfsm.Machine) []byte {
	t.Helper()
	return write(t, freeze(t, m))
}

func freeze(t testing.TB, m raftfsm.Machine) raftfsm.Frozen {
	t.Helper()
	f, err := m.Freeze()
	if err != nil {
		t.Fatalf("freeze: %v", err)
	}
	return f
}

func write(t testing.TB, f raftfsm.Frozen) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := f.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("write a snapshot: %d bytes said, %d written, %v", n, b.Len(), err)
	}
	f.Release()
	return b.Bytes()
}

func restore(t testing.TB, m raftfsm.Machine, snapshot []byte, index uint64) {
	t.Helper()
	if err := m.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatalf("restore at index %d: %v", index, err)
	}
}
