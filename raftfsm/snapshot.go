package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// snapshotBytesMax bounds a snapshot on disk and on the wire.
const snapshotBytesMax = 1 << 40

// snapshotStore keeps snapshots as files, by raft.FileSnapshotStore. It differs in
// three ways: what is written is verified before it counts as a snapshot; an
// installed one makes the log agree with it (reconcile); and there is only the
// newest one: an older one in its place would silently need a log that is gone.
type snapshotStore struct {
	files  *raft.FileSnapshotStore
	dir    string
	group  id.Shard
	logs   raft.LogStore // as raft uses it
	pin    *pin
	health *health
	newest atomic.Uint64 // index of the newest snapshot; 0: none
}

func openSnapshots(cfg *Config, logs raft.LogStore, p *pin, h *health, log hclog.Logger) (*snapshotStore, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, snapshotsKept, log)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapshotStore{
		files: files, dir: filepath.Join(cfg.Dir, "snapshots"), group: cfg.Group, logs: logs, pin: p, health: h,
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
	if err != nil || len(list) == 0 {
		return nil, err
	}
	meta, r, err := s.Open(list[0].ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if meta.Version != raft.SnapshotVersionMax {
		return nil, fmt.Errorf("snapshot %s has version %d: %w", meta.ID, meta.Version, ErrCorrupt)
	}
	if err := readHeader(r, snapshotHeader(s.group, meta)); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", meta.ID, err)
	}
	return meta, nil
}

// Create starts a snapshot.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration,
	configIndex uint64, t raft.Transport,
) (raft.SnapshotSink, error) {
	if err := s.health.failed(); err != nil {
		return nil, err
	}
	sink, err := s.files.Create(version, index, term, c, configIndex, t)
	if err != nil {
		return nil, err
	}
	meta := raft.SnapshotMeta{Index: index, Term: term, Configuration: c, ConfigurationIndex: configIndex}
	return &snapshotSink{
		SnapshotSink: sink, store: s, index: index, term: term, header: snapshotHeader(s.group, &meta),
	}, nil
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
			s.health.fail(err)
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	s.newest.Store(list[0].Index)
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
			s.health.fail(err)
		}
		return nil, nil, err
	}
	return meta, &openSnapshot{ReadCloser: r, meta: *meta}, nil
}

// snapshotSink takes a snapshot, our own or a leader's, and verifies its trailer.
type snapshotSink struct {
	raft.SnapshotSink
	store *snapshotStore
	index uint64
	term  uint64

	header []byte // what it must begin with
	own    bool   // written by Persist; else a leader's
	head   []byte // the first bytes, as many as header has
	tail   []byte // the last bytes: they may be the trailer
	bytes  uint64
	sum    uint32
	done   bool
}

// Write takes the next bytes.
func (s *snapshotSink) Write(b []byte) (int, error) {
	if s.bytes += uint64(len(b)); s.bytes > snapshotBytesMax {
		return 0, errors.New("snapshot is too large")
	}
	s.head = append(s.head, b[:min(len(b), len(s.header)-len(s.head))]...)
	s.tail = append(s.tail, b...)
	if n := len(s.tail) - snapshotTrailerBytes; n > 0 {
		s.sum = crc32.Update(s.sum, castagnoli, s.tail[:n])
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
	return s.SnapshotSink.Write(b)
}

// Close verifies the trailer, and only then makes the files a snapshot.
func (s *snapshotSink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	if err := s.verify(); err != nil {
		return errors.Join(err, s.SnapshotSink.Cancel())
	}
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	s.store.newest.Store(s.index)
	if s.own {
		return nil
	}
	if err := reconcile(s.store.logs, s.store.pin, s.index, s.term); err != nil {
		err = fmt.Errorf("make the log agree with snapshot %s: %w", s.ID(), err)
		s.store.health.fail(err)
		return err
	}
	return nil
}

// Cancel drops what was written.
func (s *snapshotSink) Cancel() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.SnapshotSink.Cancel()
}

func (s *snapshotSink) verify() error {
	if len(s.tail) != snapshotTrailerBytes || !bytes.Equal(s.head, s.header) {
		return fmt.Errorf("snapshot of %d bytes for index %d, term %d: %w", s.bytes, s.index, s.term, ErrCorrupt)
	}
	length := binary.LittleEndian.Uint64(s.tail)
	if length != s.bytes-snapshotTrailerBytes || binary.LittleEndian.Uint32(s.tail[8:]) != s.sum {
		return fmt.Errorf("snapshot of %d bytes, says %d: %w", s.bytes, length+snapshotTrailerBytes, ErrCorrupt)
	}
	return nil
}
