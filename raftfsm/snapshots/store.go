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

// kept is how many snapshots stay on disk: none but the newest is ever restored, and an
// older one may have what was erased since.
const kept = 1

// BytesMax bounds a snapshot on disk and on the wire.
const BytesMax = 1 << 40

// SegmentsDir gives the folder of the segments in a member's folder.
func SegmentsDir(folder string) string { return filepath.Join(folder, "segments") }

// Store keeps snapshots as files, by raft.FileSnapshotStore. It differs in
// three ways: what is written is verified before it counts as a snapshot; an
// installed one makes the log agree with it (reconcile); and there is only the
// newest one: an older one in its place would silently need a log that is gone.
type Store struct {
	files  *raft.FileSnapshotStore
	dir    string
	group  id.Shard
	logs   raft.LogStore // as raft uses it
	pin    func(uint64)  // keeps an entry of the log
	health *health.Monitor
	log    *slog.Logger
	newest atomic.Uint64 // index of the newest snapshot; 0: none

	segments *segment.Store // nil: the machine has none
	erase    atomic.Bool    // the next snapshot of our own leaves nothing that is dead

	// cut is held by who cuts the log or makes it agree with a snapshot.
	cut sync.Mutex

	mu   sync.Mutex        // guards what follows
	held []*segment.File   // those of the newest snapshot
	at   raft.SnapshotMeta // the newest snapshot, by index and term
}

// Config is what a Store needs to know and to be given.
type Config struct {
	Dir      string // the member's folder
	Group    id.Shard
	Logs     raft.LogStore      // as raft uses it
	Pin      func(index uint64) // keeps an entry of the log (logstore.Log.Pin)
	Health   *health.Monitor
	Segments *segment.Store // nil: the machine has none
	Log      *slog.Logger
	RaftLog  hclog.Logger
}

// New opens the folder of a member's snapshots. Sweep and Verify follow.
func New(cfg Config) (*Store, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, kept, cfg.RaftLog)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &Store{
		files: files, dir: filepath.Join(cfg.Dir, "snapshots"), group: cfg.Group, logs: cfg.Logs, pin: cfg.Pin, health: cfg.Health,
		segments: cfg.Segments, log: cfg.Log,
	}, nil
}

// Sweep removes what a crash left unfinished.
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

// Verify reads the newest snapshot and gives its description, or nil when there is
// none. raft checks the bytes of a snapshot, but not the description beside them.
func (s *Store) Verify() (*raft.SnapshotMeta, error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil // segments that are there are for the leader's snapshot
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

// Newest gives the index of the newest snapshot; 0: none.
func (s *Store) Newest() uint64 { return s.newest.Load() }

// Erasing has the snapshots of our own that take makes leave nothing that is dead.
func (s *Store) Erasing(take func() error) error {
	s.erase.Store(true)
	defer s.erase.Store(false)
	return take()
}

// CutLog removes the entries that a snapshot covers and that are from before a time.
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
	// The newest of the old entries, so that a clock that went wrong once keeps
	// nothing in the log.
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

// Reconcile makes the log agree with the newest snapshot: a crash may have come between
// the two.
func (s *Store) Reconcile(newest *raft.SnapshotMeta) error {
	return reconcile(s.logs, s.pin, newest.Index, newest.Term)
}

// clean says what our next snapshot has to leave out.
func (s *Store) clean() segment.Clean {
	if s.erase.Load() {
		return segment.Erase
	}
	return segment.Share
}

// hold notes that meta is the newest snapshot and that files, which it takes over,
// are its segments; what nobody holds any more is removed. A snapshot of our own may
// be overtaken by a leader's.
func (s *Store) hold(meta *raft.SnapshotMeta, files []*segment.File) {
	s.mu.Lock()
	old := s.held
	if s.at.Term > meta.Term || s.at.Term == meta.Term && s.at.Index > meta.Index {
		old = files
	} else {
		s.held, s.at = files, *meta
		s.newest.Store(meta.Index)
	}
	s.mu.Unlock()
	release(old)
	s.collect()
}

// collect removes the segments that nobody holds. Those that can't be removed now
// are removed later.
func (s *Store) collect() {
	if s.segments == nil {
		return
	}
	if err := s.segments.Collect(); err != nil {
		s.log.Warn("segments that are of no use stay on the disk", "err", err)
	}
}

// nth gives a segment of the newest snapshot, or nil behind the last; the caller
// releases it.
func (s *Store) nth(i int) *segment.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.held) {
		return nil
	}
	return s.held[i].Retain()
}

// Close lets go of the segments.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	release(s.held)
	s.held = nil
}

// Create starts a snapshot.
func (s *Store) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration,
	configIndex uint64, t raft.Transport,
) (raft.SnapshotSink, error) {
	if err := s.health.Failed(); err != nil {
		return nil, err
	}
	sink, err := s.files.Create(version, index, term, c, configIndex, t)
	if err != nil {
		return nil, err
	}
	meta := raft.SnapshotMeta{Index: index, Term: term, Configuration: c, ConfigurationIndex: configIndex}
	return &Sink{SnapshotSink: sink, store: s, meta: meta, header: newHeader(s.group, &meta)}, nil
}

// List gives the newest snapshot. It fails when there is a newer one that can't be
// read: raft would skip it without a word.
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

// Open gives a snapshot whose checksum was verified. A leader that can't read its
// snapshot can't help those that need it (hashicorp/raft #522): the group is taken
// out, unless a newer snapshot has just replaced this one.
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
