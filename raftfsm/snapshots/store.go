package snapshots

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/shard/segment"
)

// kept is how many snapshots stay on disk. Only the newest is ever restored, and an older
// one may hold data that was erased since.
const kept = 1

// BytesMax is the most bytes of a snapshot, on disk and on the wire.
const BytesMax = 1 << 40

// SegmentsDir returns the folder of the segments in the folder of a member.
func SegmentsDir(folder string) string { return filepath.Join(folder, "segments") }

// Store is a raft.SnapshotStore. It keeps snapshots as files by raft.FileSnapshotStore,
// and differs from it in three ways:
//
//   - It verifies a snapshot before the snapshot counts.
//   - It makes the log agree with an installed snapshot (reconcile).
//   - It keeps only the newest. An older one in its place would need entries of the log
//     that are gone.
type Store struct {
	files  *raft.FileSnapshotStore
	dir    string
	group  id.Shard
	logs   raft.LogStore // as raft uses it
	own    Log           // the same log
	health *health.Monitor
	log    *slog.Logger
	newest atomic.Uint64 // index of the newest snapshot; 0: none

	segments *segment.Store // nil: the machine has none
	erase    atomic.Bool    // the next own snapshot holds no dead data

	installs   atomic.Uint64 // snapshots that leaders have begun to send
	installing atomic.Int64  // those that have not ended

	// cut is held while the log is cut or made to agree with a snapshot.
	cut sync.Mutex

	mu   sync.Mutex        // guards the fields below
	held []*segment.File   // the segments of the newest snapshot
	at   raft.SnapshotMeta // the newest snapshot, by index and term
	// replaced has segments that were released and may still be on the disk: somebody may read them.
	replaced map[segment.Hash]bool
}

// Log is what the store tells the member's log, and asks it.
type Log interface {
	Pin(index uint64)   // keeps an entry
	Cover(index uint64) // a snapshot holds all entries up to index
	Contradiction(from raft.LogStore, l *raft.Log) error
}

// Config configures a Store.
type Config struct {
	Dir      string // the member's folder
	Group    id.Shard
	Logs     raft.LogStore // as raft uses it
	Own      Log           // the same log, of package logstore
	Health   *health.Monitor
	Segments *segment.Store // nil: the machine has none
	Log      *slog.Logger
	RaftLog  hclog.Logger
}

// New opens the folder of a member's snapshots. The caller calls Sweep and Verify next.
func New(cfg Config) (*Store, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, kept, cfg.RaftLog)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &Store{
		files: files, dir: filepath.Join(cfg.Dir, "snapshots"), group: cfg.Group, logs: cfg.Logs, own: cfg.Own, health: cfg.Health,
		segments: cfg.Segments, log: cfg.Log, replaced: make(map[segment.Hash]bool),
	}, nil
}

// Sweep removes snapshots that a crash left unfinished.
func (s *Store) Sweep() error {
	names, err := s.names(true)
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, name)))
	}
	return err
}

// names lists the folders of snapshots, finished or unfinished.
func (s *Store) names(unfinished bool) ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && strings.HasSuffix(e.Name(), ".tmp") == unfinished {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Verify reads the newest snapshot and returns its description, or nil if there is none.
// raft checks the bytes of a snapshot, but not the description beside them.
func (s *Store) Verify() (*raft.SnapshotMeta, error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil // segments without a snapshot wait for the leader's
	}
	meta, r, err := s.Open(list[0].ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if meta.Version != raft.SnapshotVersionMax {
		return nil, fmt.Errorf("snapshot %s has version %d: %w", meta.ID, meta.Version, health.ErrCorrupt)
	}
	// Open has compared the header.
	s.hold(meta, r.(*Snapshot).take())
	return meta, nil
}

// Newest returns the index of the newest snapshot, or 0 if there is none.
func (s *Store) Newest() uint64 { return s.newest.Load() }

// Installs returns how many snapshots leaders have begun to send, and whether none is on its way.
// Such a snapshot may bring back data that this member had erased from its disk.
func (s *Store) Installs() (begun uint64, quiet bool) {
	begun = s.installs.Load()
	return begun, s.installing.Load() == 0
}

// Erasing calls take. A snapshot that take makes holds no dead data.
func (s *Store) Erasing(take func() error) error {
	s.erase.Store(true)
	defer s.erase.Store(false)
	return take()
}

// CutLog removes the entries that a snapshot covers and that were appended before the
// given time.
func (s *Store) CutLog(before time.Time) error {
	s.cut.Lock()
	defer s.cut.Unlock()
	newest := s.newest.Load()
	first, err := s.logs.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	last, err := s.logs.LastIndex()
	if err != nil {
		return err
	}
	// Find the newest of the old entries. An entry with a wrong time then keeps no older
	// entry in the log.
	for index := min(newest, last); index >= first; index-- {
		var l raft.Log
		switch err := s.logs.GetLog(index, &l); {
		case errors.Is(err, raft.ErrLogNotFound): // cut by raft meanwhile
			return nil
		case err != nil:
			return err
		case l.AppendedAt.Before(before):
			return s.logs.DeleteRange(first, index)
		}
	}
	return nil
}

// Reconcile makes the log agree with the newest snapshot, in case a crash came between
// the snapshot and the log.
func (s *Store) Reconcile(newest *raft.SnapshotMeta) error {
	return reconcile(s.logs, s.own.Pin, newest.Index, newest.Term)
}

// clean returns what the segments of the next own snapshot leave out.
func (s *Store) clean() segment.Clean {
	if s.erase.Load() {
		return segment.Erase
	}
	return segment.Share
}

// hold records meta as the newest snapshot and takes over files, its segments. It removes
// the segments that are no longer held. If the leader has installed a newer snapshot
// meanwhile, hold only releases files.
func (s *Store) hold(meta *raft.SnapshotMeta, files []*segment.File) {
	s.mu.Lock()
	s.own.Cover(meta.Index)
	old := s.held
	if s.at.Term > meta.Term || s.at.Term == meta.Term && s.at.Index > meta.Index {
		old = files
	} else {
		s.held, s.at = files, *meta
		s.newest.Store(meta.Index)
	}
	for _, f := range old {
		s.replaced[f.Ref().Hash] = true
	}
	for _, f := range s.held {
		delete(s.replaced, f.Ref().Hash)
	}
	s.mu.Unlock()
	release(old)
	s.collect()
}

// admit returns a *health.RewriteError, and takes the group out of service, if a snapshot
// that another member sends contradicts what this member knows to be committed.
func (s *Store) admit(meta *raft.SnapshotMeta) error {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	err := s.own.Contradiction(s.logs, &raft.Log{Index: meta.Index, Term: meta.Term})
	// Terms never decrease along a log.
	if meta.Index == at.Index && meta.Term != at.Term || meta.Index < at.Index && meta.Term > at.Term {
		err = &health.RewriteError{From: meta.Index, Commit: at.Index}
	}
	if err != nil {
		s.health.Fail(err)
	}
	return err
}

// collect removes the segments that are not held. It logs an error and tries again the
// next time.
func (s *Store) collect() {
	if s.segments == nil {
		return
	}
	if err := s.segments.Collect(); err != nil {
		s.log.Warn("unused segments were not removed, trying again later", "err", err)
	}
}

// Erased removes the segments that no snapshot has any more. It returns an error while one of them
// stays on the disk, because a search or a backup that began before still reads it.
func (s *Store) Erased() error {
	if s.segments == nil {
		return nil
	}
	if err := s.segments.Collect(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.replaced { // any of them will do
		if s.segments.Held(h) {
			return fmt.Errorf("segment %s was replaced, but is still read", h)
		}
		delete(s.replaced, h)
	}
	return nil
}

// nth returns segment i of the newest snapshot, or nil if there are fewer. The caller
// releases it.
func (s *Store) nth(i int) *segment.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.held) {
		return nil
	}
	return s.held[i].Retain()
}

// Close releases the segments.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	release(s.held)
	s.held = nil
}

// Create returns the Sink of a new snapshot.
func (s *Store) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration,
	configIndex uint64, t raft.Transport,
) (raft.SnapshotSink, error) {
	if err := s.health.Failed(); err != nil {
		return nil, err
	}
	time.Sleep(time.Millisecond) // a name has the millisecond: one more snapshot of the same index needs another
	sink, err := s.files.Create(version, index, term, c, configIndex, t)
	if err != nil {
		return nil, err
	}
	meta := raft.SnapshotMeta{Index: index, Term: term, Configuration: c, ConfigurationIndex: configIndex}
	return &Sink{SnapshotSink: sink, store: s, meta: meta, header: newHeader(s.group, &meta)}, nil
}

// List returns the newest snapshot. It fails if a newer one can't be read, which raft would
// skip silently.
func (s *Store) List() ([]*raft.SnapshotMeta, error) {
	list, err := s.files.List()
	if err != nil {
		return nil, err
	}
	names, err := s.names(false)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var term, index, ms uint64
		if n, _ := fmt.Sscanf(name, "%d-%d-%d", &term, &index, &ms); n != 3 {
			continue
		}
		if len(list) == 0 || term > list[0].Term || term == list[0].Term && index > list[0].Index {
			err := fmt.Errorf("snapshot %s can't be read: %w", name, health.ErrCorrupt)
			s.health.Fail(err)
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[:1], nil
}

// Open returns a snapshot with its checksum verified. A leader that can't read its snapshot
// can't serve members that need it (hashicorp/raft #522). So Open takes the group out on
// an error, unless a newer snapshot has just replaced this one.
func (s *Store) Open(name string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.files.Open(name)
	if err != nil {
		err = fmt.Errorf("open snapshot %s: %w", name, err)
		if !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", err, health.ErrCorrupt)
			s.health.Fail(err)
		}
		return nil, nil, err
	}
	o, err := s.openSegments(meta, r)
	if err != nil {
		err = errors.Join(fmt.Errorf("open snapshot %s: %w", name, err), r.Close())
		s.health.Fail(err)
		return nil, nil, err
	}
	whole := *meta
	whole.Size = o.wireBytes(nil)
	return &whole, o, nil
}
