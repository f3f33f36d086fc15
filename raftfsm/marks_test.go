package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
)

// book has the marks that all members of a test's group have seen. It is stricter than the
// table of a node, which has only its own and those of the last second.
type book struct {
	mu     sync.Mutex // guards marks and behind
	marks  map[id.Member]Mark
	behind map[id.Member]Mark
}

func newBook() *book { return &book{marks: map[id.Member]Mark{}, behind: map[id.Member]Mark{}} }

func (b *book) tune(cfg *Config) { cfg.Marks = b }

func (b *book) Known(m id.Member) (Mark, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, lost := b.behind[m]
	return b.marks[m], !lost
}

func (b *book) Add(m id.Member, k Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.marks[m].Before(k) {
		b.marks[m] = k
	}
}

func (b *book) Behind(m id.Member, k Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind[m] = k
}

func (b *book) lost() map[id.Member]Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.behind
}

// judged opens a member, fails the test if it has less than its mark, and admits it.
func (b *book) judged(t *testing.T, c *cluster, name id.Member) *member {
	t.Helper()
	m := c.open(name)
	known, _ := b.Known(name)
	s, _ := m.Standing()
	if own := (Mark{Term: s.Term, Index: s.Last}); own.Before(known) {
		t.Errorf("%s has %+v after its start, and %+v is known of it", name, own, known)
	}
	m.Gate().Admit()
	return m
}

// marked runs a test in a bubble with a new group of admitted voters and a book.
func marked(t *testing.T, voters int, do func(t *testing.T, c *cluster, b *book)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		b := newBook()
		c := newCluster(t, newWires(), b.tune)
		c.found(names(voters)...)
		for _, m := range c.members {
			m.Gate().Admit()
		}
		c.propose("first")
		c.agree()
		do(t, c, b)
	})
}

// A leader replaces the uncommitted tail of a member that had acknowledged it to the leader
// of an earlier term. The member has lost nothing.
func TestReplacedTailIsNotLostState(t *testing.T) {
	marked(t, 5, func(t *testing.T, c *cluster, b *book) {
		old := c.leader()
		follower := c.others(old)[0]
		c.wires.part(1, old.name, follower)
		for i := range 40 { // with a majority cut off, they are not committed
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := old.Propose(ctx, fmt.Append(nil, "lost ", i))
			cancel()
			if err == nil {
				t.Fatal("a minority committed a command")
			}
		}
		rest := c.others(old)[1:]
		c.propose("second", rest...)
		acknowledged, _ := b.Known(follower)
		c.wires.part(0, old.name, follower)
		c.agree()
		if s, _ := c.members[follower].Standing(); s.Last >= acknowledged.Index || acknowledged.Index < 20 {
			t.Fatalf("the follower has index %d after it acknowledged %d: the test did not cut its log", s.Last, acknowledged.Index)
		}
		c.propose("third")
		c.stop(follower)
		b.judged(t, c, follower)
		c.propose("fourth")
		c.agree()
		if lost := b.lost(); len(lost) > 0 {
			t.Errorf("sound members were accused: %v", lost)
		}
	})
}

// A disk fails when a member writes the term of a new leader. The member forgets that term, so it must not
// have answered in it.
func TestUnwrittenTermIsNotAnswered(t *testing.T) {
	marked(t, 5, func(t *testing.T, c *cluster, b *book) {
		old := c.leader()
		follower := c.others(old)[0]
		c.wires.part(1, follower)
		c.stop(old.name)
		rest := slices.DeleteFunc(c.others(old), func(m id.Member) bool { return m == follower })
		c.propose("by another leader", rest...)
		c.members[follower].disk.breakDown(errors.New("input/output error"))
		c.wires.part(0, follower)
		<-c.members[follower].fatal
		time.Sleep(10 * time.Second)                           // it stands for election in further terms
		if s, sound := c.members[follower].Standing(); sound { // as its node tells the others
			b.Add(follower, Mark{Term: s.Term})
		}
		c.stop(follower)
		b.judged(t, c, follower)
		c.propose("with the disk repaired", rest...)
		c.agree(append(rest, follower)...)
	})
}

// Partitions, restarts, snapshots and cut logs never make a sound member look as if it had
// lost state.
func TestSoundMemberIsNeverAccused(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			marked(t, 5, func(t *testing.T, c *cluster, b *book) { huntAccusations(t, c, b, seed) })
		})
	}
}

func huntAccusations(t *testing.T, c *cluster, b *book, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	all := names(5)
	for step := range 60 {
		name := all[r.IntN(len(all))]
		switch m := c.members[name]; r.IntN(6) {
		case 0:
			c.wires.part(1, all[r.IntN(5)], name)
		case 1:
			c.wires.part(0, all...)
		case 2:
			c.stop(name)
		case 3:
			if m == nil {
				b.judged(t, c, name)
			}
		case 4:
			if m != nil && r.IntN(3) == 0 {
				_ = m.Erase(time.Now()) // as far as this member can now
			}
		}
		for _, m := range c.members {
			if m.IsLeader() { // also one that is cut off: its entries are replaced
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(30))*time.Millisecond)
				for i := range 5 {
					_, _ = m.Propose(ctx, fmt.Append(nil, step, i)) // committed or not
				}
				cancel()
			}
		}
		time.Sleep(time.Duration(r.IntN(900)) * time.Millisecond)
	}
	c.wires.part(0, all...)
	for _, name := range all {
		if c.members[name] == nil {
			b.judged(t, c, name)
		}
	}
	c.propose("last")
	time.Sleep(time.Minute)
	if lost := b.lost(); len(lost) > 0 {
		t.Errorf("sound members were accused: %v", lost)
	}
}

// A member that resumes with older files is noticed by its leader, and its answers count
// for nothing.
func TestLeaderNoticesFollowerThatFellBehind(t *testing.T) {
	marked(t, 3, func(t *testing.T, c *cluster, b *book) {
		leader := c.leader()
		name, other := c.others(leader)[0], c.others(leader)[1]
		dir, image := filepath.Join(c.dir, string(name)), filepath.Join(t.TempDir(), "image")
		c.stop(name)
		copyDir(t, dir, image)
		c.open(name).Gate().Admit()
		c.propose("second")
		c.agree()
		before, _ := b.Known(name)
		c.stop(name)
		must.Do(t, os.RemoveAll(dir))
		copyDir(t, image, dir)
		m := c.open(name)
		m.Gate().Admit()
		time.Sleep(time.Second)
		if got, behind := b.lost()[name]; !behind || got.Before(before) {
			t.Errorf("the leader noticed %v of %s, want at least %v", b.lost(), name, before)
		}
		if s, _ := m.Standing(); s.Last >= before.Index {
			t.Errorf("the member still receives the log, to index %d", s.Last)
		}
		c.stop(other)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := leader.Propose(ctx, []byte("third")); err == nil {
			t.Error("a command was committed with a member that had lost state")
		}
	})
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.CopyFS(to, os.DirFS(from)))
}

// Before Admit a member neither votes nor raises the term, and before Receive it takes no
// entries.
func TestMemberWaitsForAdmission(t *testing.T) {
	marked(t, 3, func(t *testing.T, c *cluster, _ *book) {
		all := names(3)
		for _, name := range all {
			c.stop(name)
		}
		var terms []uint64
		for _, name := range all {
			s, _ := c.open(name).Standing()
			terms = append(terms, s.Term)
		}
		c.members[all[0]].Gate().Admit()
		time.Sleep(time.Minute)
		for i, name := range all {
			m := c.members[name]
			if s, _ := m.Standing(); s.Term != terms[i] || m.IsLeader() || m.Gate().Admitted() != (i == 0) {
				t.Errorf("%s: %+v, leader %v, admitted %v; want term %d", name, s, m.IsLeader(), m.Gate().Admitted(), terms[i])
			}
		}
		c.members[all[1]].Gate().Admit()
		before, _ := c.members[all[2]].Standing()
		last := before.Last
		c.propose("second", all[:2]...)
		time.Sleep(time.Second)
		if s, _ := c.members[all[2]].Standing(); s.Last != last {
			t.Errorf("%s took entries to index %d before Receive", all[2], s.Last)
		}
		c.members[all[2]].Gate().Receive()
		c.agree()
		c.stop(slices.DeleteFunc(all[:2:2], func(m id.Member) bool { return !c.members[m].IsLeader() })[0])
		time.Sleep(time.Minute)
		for _, m := range c.members {
			if m.IsLeader() {
				t.Errorf("%s leads with the vote of a member that was not admitted", m.name)
			}
		}
	})
}

// A member that restarts has applied its snapshot only. Its electors are those of the log,
// or it would wait for voters that have left.
func TestRestartedMemberKnowsItsElectors(t *testing.T) {
	marked(t, 3, func(t *testing.T, c *cluster, _ *book) {
		leader := c.leader()
		stays, leaves := c.others(leader)[0], c.others(leader)[1]
		c.snapshot(stays)
		_, index, err := leader.Servers()
		must.Do(t, err)
		must.Do(t, leader.Remove(t.Context(), leaves, index))
		c.agree(leader.name, stays)
		for _, name := range names(3) {
			c.stop(name)
		}
		m := c.open(stays)
		want := []id.Member{leader.name, stays}
		slices.Sort(want)
		got := m.Electors()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if applied, _, err := m.Servers(); err != nil || len(applied) != 3 {
			t.Errorf("the member has applied %v (%v): the test needs an older configuration", applied, err)
		}
	})
}
