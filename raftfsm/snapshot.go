package raftfsm

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

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/shard/segment"
)

// snapshotBytesMax bounds a snapshot on disk and on the wire.
const snapshotBytesMax = 1 << 40

// segmentsDir is where the segments are, in the group's folder.
const segmentsDir = "segments"

// snapshotStore keeps snapshots as files, by raft.FileSnapshotStore. It differs in
// three ways: what is written is verified before it counts as a snapshot; an
// installed one makes the log agree with it (reconcile); and there is only the
// newest one: an older one in its place would silently need a log that is gone.
type snapshotStore struct {
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

func openSnapshots(cfg *Config, logs raft.LogStore, pin func(uint64), h *health.Monitor, log hclog.Logger, segments *segment.Store) (*snapshotStore, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, snapshotsKept, log)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapshotStore{
		files: files, dir: filepath.Join(cfg.Dir, "snapshots"), group: cfg.Group, logs: logs, pin: pin, health: h,
		segments: segments, log: cfg.Log,
	}, nil
}

// sweep removes what a crash left unfinished.
func (s *snapshotStore) sweep() error {
	names, err := s.names(true)
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, name)))
	}
	return err
}

// names lists the folders of snapshots, finished or unfinished.
func (s *snapshotStore) names(unfinished bool) ([]string, error) {
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

// verify reads the newest snapshot and gives its description, or nil when there is
// none. raft checks the bytes of a snapshot, but not the description beside them.
func (s *snapshotStore) verify() (*raft.SnapshotMeta, error) {
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
		return nil, fmt.Errorf("snapshot %s has version %d: %w", meta.ID, meta.Version, ErrCorrupt)
	}
	// Open has compared the header.
	s.hold(meta, r.(*openSnapshot).take())
	return meta, nil
}

// clean says what our next snapshot has to leave out.
func (s *snapshotStore) clean() segment.Clean {
	if s.erase.Load() {
		return segment.Erase
	}
	return segment.Share
}

// hold notes that meta is the newest snapshot and that files, which it takes over,
// are its segments; what nobody holds any more is removed. A snapshot of our own may
// be overtaken by a leader's.
func (s *snapshotStore) hold(meta *raft.SnapshotMeta, files []*segment.File) {
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
func (s *snapshotStore) collect() {
	if s.segments == nil {
		return
	}
	if err := s.segments.Collect(); err != nil {
		s.log.Warn("segments that are of no use stay on the disk", "err", err)
	}
}

// nth gives a segment of the newest snapshot, or nil behind the last; the caller
// releases it.
func (s *snapshotStore) nth(i int) *segment.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.held) {
		return nil
	}
	return s.held[i].Retain()
}

// close lets go of the segments.
func (s *snapshotStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	release(s.held)
	s.held = nil
}

// Create starts a snapshot.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration,
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
	return &snapshotSink{SnapshotSink: sink, store: s, meta: meta, header: snapshotHeader(s.group, &meta)}, nil
}

// List gives the newest snapshot. It fails when there is a newer one that can't be
// read: raft would skip it without a word.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
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
			err := fmt.Errorf("snapshot %s can't be read: %w", name, ErrCorrupt)
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
func (s *snapshotStore) Open(name string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.files.Open(name)
	if err != nil {
		err = fmt.Errorf("open snapshot %s: %w", name, err)
		if !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", err, ErrCorrupt)
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
