package shardfsm

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard"
	"facet/shard/scan"
	"facet/shard/seal"
)

// meeting is the log of a machine that gets a command just when a search asks for the index.
type meeting struct {
	*Machine
	apply func()
	work  sync.WaitGroup
}

func (m *meeting) Hold() (index uint64, release func()) {
	index, release = m.Machine.Hold()
	m.work.Go(m.apply)
	for range 1000 { // enough to apply it
		runtime.Gosched()
	}
	return index, release
}

// A search beside a write states the index whose state it saw: the number of events is that of the index.
func TestCoverageIsOfItsIndex(t *testing.T) {
	t.Parallel()
	const writes = 60
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeyBytes))
	must.Do(t, err)
	m := &meeting{Machine: New(newTable(t), testArena)}
	defer m.Shard().Close()
	shard.Follow(m.Shard(), m)
	m.Apply(1, GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: writes}))
	var subjects []id.Subject
	events := map[uint64]int{1: 0} // by index
	for i := uint64(2); i < writes; i++ {
		events[i] = events[i-1] + 1
		m.apply = func() {
			c := testRegister(byte(i))
			c.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: testGallery, Generation: 1, Subject: c.Subject, Event: c.Event},
				engine.Face{Template: make([]float32, 16)})
			m.Apply(i, RegisterOp.Encode(c))
			subjects = append(subjects, c.Subject)
		}
		if len(subjects) > 0 && i%3 == 0 {
			events[i] = events[i-1] - 1
			m.apply = func() {
				m.Apply(i, UnregisterOp.Encode(Unregister{Gallery: testGallery, Generation: 1, Op: id.Operation{byte(i)}, Subject: subjects[0]}))
				subjects = subjects[1:]
			}
		}
		c := new(scan.Coverage)
		q := shard.Query{Probe: make([]float32, 16), Limit: 3, Coverage: c}
		if _, err := m.Shard().Search(t.Context(), testGallery, 1, key, q); err != nil {
			t.Fatal(err)
		}
		if m.work.Wait(); c.Index != i-1 || c.Active != events[c.Index] || c.Searched != c.Active || c.LeftOut != 0 {
			t.Fatalf("%d of %d events searched at index %d, which has %d; the next write is %d", c.Searched, c.Active, c.Index, events[c.Index], i)
		}
	}
}
