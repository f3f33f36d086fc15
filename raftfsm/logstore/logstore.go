package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// castagnoli is the polynomial that processors compute (SSE 4.2, ARMv8).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sealVersion = 1
	sealBytes   = 1 + 4
)

// Disk is the storage under Log and Stable: a file, or in tests a disk that hangs.
type Disk interface {
	raft.LogStore
	// Record returns the record of the last write.
	Record() Record
	// Save changes the record, and writes it.
	Save(change func(*Record)) error
	// Commit sets the commit index that the next write records, unless it is lower than
	// before. It returns the highest.
	Commit(index uint64) (highest uint64)
	Close() error
}

// OpenDisk opens the log file in dir. It fails after lockTimeout if another process has
// the file open.
func OpenDisk(dir string) (Disk, error) { return openBolt(dir, false) }

// OpenUnsynced is OpenDisk for tests that simulate no loss of power: it never calls fsync,
// which would only cost time.
func OpenUnsynced(dir string) (Disk, error) { return openBolt(dir, true) }

// guarded runs f, which reads or writes a mapped file. bbolt panics on damaged pages, and
// the processor faults on a bad sector. guarded returns an error for both.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", health.ErrCorrupt, p)
		}
	}()
	return f()
}

// Log is a raft.LogStore. bbolt has no checksums, so each entry is stored with a seal
// behind its extensions:
//
//	┌────────────┬─────────┬─────────┐
//	│ extensions │ version │ CRC-32C │   over index, term, type, data, extensions
//	└────────────┴─────────┴─────────┘
//
// The first error other than raft.ErrLogNotFound takes the group out of service.
type Log struct {
	disk   Disk
	health *health.Monitor
	pin    pin
	freed  atomic.Bool // freed pages may hold removed entries

	commit  atomic.Pointer[func() uint64] // raft's commit index; nil before Follow
	covered atomic.Uint64                 // index of the newest snapshot
}

// NewLog returns the log on d. It reports writes and errors to h.
func NewLog(d Disk, h *health.Monitor) *Log {
	l := &Log{disk: d, health: h}
	l.freed.Store(true)
	return l
}

// sealSum returns the checksum of an entry at its place in the log.
func sealSum(l *raft.Log, extensions []byte) uint32 {
	var head [25]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	binary.LittleEndian.PutUint64(head[16:], uint64(len(l.Data)))
	head[24] = byte(l.Type)
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, l.Data)
	return crc32.Update(sum, castagnoli, extensions)
}

// seal returns the stored form of l. It does not change l.
func seal(l *raft.Log) *raft.Log {
	s := *l
	s.Extensions = make([]byte, 0, len(l.Extensions)+sealBytes)
	s.Extensions = append(s.Extensions, l.Extensions...)
	s.Extensions = append(s.Extensions, sealVersion)
	s.Extensions = binary.LittleEndian.AppendUint32(s.Extensions, sealSum(l, l.Extensions))
	return &s
}

// unseal checks the stored form of the entry at index and removes the seal.
func unseal(index uint64, l *raft.Log) error {
	n := len(l.Extensions) - sealBytes
	if l.Index != index || n < 0 || l.Extensions[n] != sealVersion {
		return fmt.Errorf("entry %d of the log has no seal: %w", index, health.ErrCorrupt)
	}
	if sealSum(l, l.Extensions[:n]) != binary.LittleEndian.Uint32(l.Extensions[n+1:]) {
		return fmt.Errorf("entry %d of the log: %w", index, health.ErrCorrupt)
	}
	l.Extensions = l.Extensions[:n:n]
	if n == 0 {
		l.Extensions = nil
	}
	return nil
}

// read reads the entry at index. Unlike GetLog, it never takes the group out of service.
func (s *Log) read(index uint64, l *raft.Log) error {
	*l = raft.Log{}
	err := guarded(func() error { return s.disk.GetLog(index, l) })
	if err != nil {
		if errors.Is(err, raft.ErrLogNotFound) {
			return raft.ErrLogNotFound
		}
		return fmt.Errorf("read entry %d of the log: %w", index, err)
	}
	return unseal(index, l)
}

// GetLog reads the entry at index, or returns raft.ErrLogNotFound. raft panics on any other
// error. So GetLog takes the group out of service first, and gives raft an entry without
// effect, which no other member sees.
func (s *Log) GetLog(index uint64, l *raft.Log) error {
	err := s.read(index, l)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	s.health.Fail(err)
	*l = raft.Log{Index: index, Type: raft.LogNoop}
	return nil
}

// StoreLog writes one entry.
func (s *Log) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs writes all entries or none, and returns when they are on the disk.
func (s *Log) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, l := range logs {
		sealed[i] = seal(l)
	}
	err := s.write("write the log", func() error { return s.disk.StoreLogs(sealed) })
	if err == nil && len(logs) > 0 {
		s.pin.passed(logs[len(logs)-1].Index)
	}
	return err
}

// DeleteRange removes the entries from first to last, both included. It leaves the pinned
// entry if that is last. It removes a committed entry only if a snapshot has replaced it.
// Otherwise it takes the group out of service with a *health.RewriteError.
func (s *Log) DeleteRange(first, last uint64) error {
	if s.pin.holds(last) {
		last--
	}
	if first > last {
		return nil
	}
	if commit := s.Commit(); first <= commit {
		oldest, err := s.FirstIndex()
		if err != nil {
			return err
		}
		if first > oldest || last > s.covered.Load() {
			return s.rewritten(first)
		}
	}
	defer s.freed.Store(true)
	return s.write("cut the log", func() error { return s.disk.DeleteRange(first, last) })
}

func (s *Log) write(what string, f func() error) error {
	s.Commit() // the write records it
	return write(s.health, what, f)
}

// write makes a change on the disk. If the change fails, write takes the group out of
// service, because after a failed fsync the contents of the file are unknown.
func write(h *health.Monitor, what string, f func() error) error {
	if err := h.Failed(); err != nil {
		return err
	}
	answered := h.Writing()
	err := guarded(f)
	answered()
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		h.Fail(err)
	}
	return err
}

// FirstIndex returns the index of the oldest entry, or 0 if the log is empty.
func (s *Log) FirstIndex() (uint64, error) { return s.edge(s.disk.FirstIndex) }

// LastIndex returns the index of the newest entry, or 0 if the log is empty.
func (s *Log) LastIndex() (uint64, error) { return s.edge(s.disk.LastIndex) }

func (s *Log) edge(f func() (uint64, error)) (index uint64, err error) {
	err = guarded(func() (err error) { index, err = f(); return err })
	if err != nil {
		err = fmt.Errorf("read the ends of the log: %w", err)
		s.health.Fail(err)
	}
	return index, err
}

// Verify reads the whole log, and returns ErrCorrupt for damage or a hole. raft must not
// vote or apply on such a log.
func (s *Log) Verify() error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	var l raft.Log
	for index := first; index <= last && first > 0; index++ {
		if err := s.read(index, &l); errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("entry %d of the log is missing: %w", index, health.ErrCorrupt)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Renew replaces the log's file by a copy if entries were removed since the last time.
func (s *Log) Renew() error {
	d, ok := s.disk.(*boltDisk)
	if !ok || !s.freed.Swap(false) { // a disk of tests has no file to copy
		return nil
	}
	answered := s.health.Writing()
	err := d.renew()
	answered()
	if err != nil {
		err = fmt.Errorf("renew the log: %w", err)
		s.health.Fail(err)
	}
	return err
}
