package rollback

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
	"facet/raftfsm"
)

// rowsMax is the most rows that a table has. Further rows are dropped.
const rowsMax = 1 << 14

// Run is one start of a node. Count grows with each start and with each replica that the
// node makes, and is on the disk before a peer learns it. So a Run whose Count is not above
// that of an earlier start belongs to a data directory that was rolled back or copied.
type Run struct {
	Count uint64 `json:"count,omitempty"`
	ID    uint64 `json:"id,omitempty"`
	// Round counts the exchanges of the run. It falls when a machine resumes with its old
	// memory. It is never written to the disk.
	Round uint64 `json:"round,omitempty"`
}

// later returns the Run that a peer keeps of two: the later one, or the first of two that
// can't both be true.
func (r Run) later(o Run) Run {
	if o.Count > r.Count || o.Count == r.Count && o.ID == r.ID && o.Round > r.Round {
		return o
	}
	return r
}

// refutedBy reports whether known, which a peer has recorded of this node, shows that r is
// not the node's only latest run.
func (r Run) refutedBy(known Run) bool {
	switch {
	case known.Count != r.Count:
		return known.Count > r.Count
	case known.ID != r.ID:
		return known.Count > 0
	default:
		return known.Round > r.Round
	}
}

// Row is what is known of one member's replica of a group.
type Row struct {
	Member id.Member `json:"m"`
	Group  id.Shard  `json:"g"`
	raftfsm.Mark
}

// replica names a member's replica of a group.
type replica struct {
	member id.Member
	group  id.Shard
}

// stored is the contents of the file.
type stored struct {
	Count uint64              `json:"count"`           // of this node's Run
	Lives map[id.Shard]uint64 `json:"lives,omitempty"` // of the replicas here
	Runs  map[id.Member]Run   `json:"runs,omitempty"`  // of other members
	Rows  []Row               `json:"rows,omitempty"`
}

// entry is a row of the table.
type entry struct {
	raftfsm.Mark
	// version is the table's version when this node last saw the mark grow by itself. Rows
	// that only peers have seen have version 0 and are not sent on.
	version uint64
}

// Table keeps what this node knows of the members of its cluster, itself included. It is
// safe for concurrent use and has no goroutine.
type Table struct {
	path string
	self id.Member

	wake chan struct{} // holds one element when Detector has something to do

	mu      sync.Mutex // guards run to dirty; never held while the file is written
	run     Run
	durable bool // run is on the disk
	damaged bool // the file could not be read
	lives   map[id.Shard]uint64
	runs    map[id.Member]Run
	rows    map[replica]entry
	behind  map[replica]raftfsm.Mark // members that lost state, and the mark that shows it
	version uint64
	dirty   bool

	saving sync.Mutex // one save at a time
}

// Open reads the table of a data directory and begins a run of the member self. If the disk
// has no space for the run, the node tells it to nobody until Save succeeds.
func Open(dir string, self id.Member, log *slog.Logger) (*Table, error) {
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("make the id of a run: %w", err)
	}
	t := &Table{
		path: filepath.Join(dir, File), self: self, lives: map[id.Shard]uint64{}, runs: map[id.Member]Run{},
		rows: map[replica]entry{}, behind: map[replica]raftfsm.Mark{}, dirty: true, wake: make(chan struct{}, 1),
	}
	var s stored
	if err := s.load(t.path); errors.Is(err, errFile) {
		log.Warn("what this node knew of the cluster's members is lost", "err", err)
		s, t.damaged = stored{}, true
	} else if err != nil {
		return nil, err
	}
	t.run = Run{Count: s.Count + 1, ID: max(binary.LittleEndian.Uint64(seed[:]), 1)}
	maps.Copy(t.lives, s.Lives)
	maps.Copy(t.runs, s.Runs)
	for _, r := range s.Rows {
		t.rows[replica{r.Member, r.Group}] = entry{Mark: r.Mark}
	}
	if err := t.Save(); err != nil {
		log.Warn("this start of the node could not be recorded", "err", err)
	}
	return t, nil
}

// Save writes the table to the disk if it has changed.
func (t *Table) Save() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	if !t.dirty {
		t.mu.Unlock()
		return nil
	}
	s := t.stored()
	t.dirty = false
	t.mu.Unlock()
	err := s.save(t.path)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.dirty = true
		return err
	}
	t.durable = t.durable || s.Count == t.run.Count
	return nil
}

// stored returns the contents of the file. The caller holds mu.
func (t *Table) stored() stored {
	s := stored{Count: t.run.Count, Lives: maps.Clone(t.lives), Runs: make(map[id.Member]Run, len(t.runs))}
	for m, r := range t.runs {
		r.Round = 0
		s.Runs[m] = r
	}
	for of, e := range t.rows {
		s.Rows = append(s.Rows, Row{of.member, of.group, e.Mark})
	}
	slices.SortFunc(s.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Member, b.Member))
	})
	return s
}

// Begin gives the replica of a group that this node is about to make a new life, and writes
// that to the disk. What peers know of the replica's earlier lives no longer concerns it.
func (t *Table) Begin(number id.Shard) error {
	t.mu.Lock()
	t.run.Count++
	t.durable = false
	t.lives[number] = t.run.Count
	t.dirty = true
	t.mu.Unlock()
	return t.Save()
}

// Life returns the life of this node's replica of a group.
func (t *Table) Life(number id.Shard) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lives[number]
}

// Marks returns the marks of a group's members.
func (t *Table) Marks(number id.Shard) raftfsm.Marks { return marks{t, number} }

// marks is the part of a Table that concerns one group.
type marks struct {
	*Table
	group id.Shard
}

// Known returns the mark of a member.
func (m marks) Known(member id.Member) (k raftfsm.Mark, sound bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := replica{member, m.group}
	k = m.rows[of].Mark
	lost, behind := m.behind[of]
	return k, !behind || lost.Life < k.Life
}

// Add records a mark that this node has seen.
func (m marks) Add(member id.Member, k raftfsm.Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	m.merge(Row{member, m.group, k}, m.version)
}

// Behind records that a member has less than k.
func (m marks) Behind(member id.Member, k raftfsm.Mark) {
	m.mu.Lock()
	m.behind[replica{member, m.group}] = k
	m.mu.Unlock()
	m.Wake()
}

// Wake makes Detector look at the groups now.
func (t *Table) Wake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// merge records a row if it says more than what is known. The caller holds mu.
func (t *Table) merge(r Row, version uint64) {
	of := replica{r.Member, r.Group}
	e, known := t.rows[of]
	if !known && len(t.rows) >= rowsMax || known && !e.Before(r.Mark) {
		return
	}
	t.rows[of] = entry{r.Mark, version}
	t.dirty = true
}

// Learn records what the peer from has told: its run and the rows that it has seen. It
// returns what is now known of the peer's run, and whether that is the run that told. The
// rows of an earlier run are left out: another process has replaced it since, and what the
// old one did as a leader would accuse the new one.
func (t *Table) Learn(from id.Member, r Run, rows []Row) (known Run, latest bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.runs[from]
	known = before.later(r)
	t.dirty = t.dirty || known.Count != before.Count || known.ID != before.ID
	t.runs[from] = known
	if known.Count != r.Count || known.ID != r.ID {
		return known, false
	}
	for _, row := range rows {
		t.merge(row, 0)
	}
	return known, true
}

// Of returns the rows of a member.
func (t *Table) Of(m id.Member) []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []Row
	for of, e := range t.rows {
		if of.member == m {
			rows = append(rows, Row{of.member, of.group, e.Mark})
		}
	}
	return rows
}

// Since returns the rows that this node has seen itself since a version, and the present
// version.
func (t *Table) Since(version uint64) ([]Row, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []Row
	for of, e := range t.rows {
		if e.version > version {
			rows = append(rows, Row{of.member, of.group, e.Mark})
		}
	}
	return rows, t.version
}

// NextRound returns this node's run with the number of the next exchange. The run is zero
// while it is not on the disk.
func (t *Table) NextRound() Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run.Round++
	if !t.durable {
		return Run{}
	}
	return t.run
}

// Refuted reports whether what a peer knows of this node shows that its data directory or
// its memory was rolled back. A node whose file was damaged continues from what its peers
// know.
func (t *Table) Refuted(known Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.damaged && known.ID != t.run.ID {
		if t.run.Count <= known.Count {
			t.run.Count, t.durable, t.dirty = known.Count+1, false, true
		}
		return false
	}
	return t.run.refutedBy(known)
}

// Adopt takes the lives of the replicas here from what a peer knows, if the file was damaged.
func (t *Table) Adopt(rows []Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		if t.damaged && r.Member == t.self && t.lives[r.Group] < r.Life {
			t.lives[r.Group], t.dirty = r.Life, true
		}
	}
}

// Lost returns the members that lost state and have not begun another life.
func (t *Table) Lost() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []Row
	for of, k := range t.behind {
		if t.rows[of].Life <= k.Life {
			rows = append(rows, Row{of.member, of.group, k})
		} else {
			delete(t.behind, of)
		}
	}
	return rows
}

// Reborn records that a member's replica has begun a life.
func (t *Table) Reborn(m id.Member, number id.Shard, life uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	t.merge(Row{m, number, raftfsm.Mark{Life: life}}, t.version)
}

// Forgive forgets what is known of a replica. Its node runs a release without marks.
func (t *Table) Forgive(r Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, replica{r.Member, r.Group})
	delete(t.behind, replica{r.Member, r.Group})
	t.dirty = true
}

// Drop forgets the members that gone reports.
func (t *Table) Drop(gone func(id.Member) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of := range t.rows {
		if gone(of.member) {
			delete(t.rows, of)
			delete(t.behind, of)
			t.dirty = true
		}
	}
	for m := range t.runs {
		if gone(m) {
			delete(t.runs, m)
			t.dirty = true
		}
	}
}

// Start returns the count of a member's last start that is known here.
func (t *Table) Start(m id.Member) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m == t.self {
		return t.run.Count
	}
	return t.runs[m].Count
}
