// Package state keeps in a file which rows of an import are in, so that the same command
// goes on where an earlier run ended. Each row is one record of fixed length behind a
// header. A torn record at the end is cut off, a damaged one counts as missing.
package state

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"syscall"

	"facet/internal/id"
)

const (
	header      = "facet import 1 " // and the gallery's 16 hexadecimal digits
	headerBytes = len(header) + 16 + 1
	recordBytes = 32 + 1 + 16 + 1 + 1 + 1 + 36 + 1 + 36 + 1 + 6 + 1 + 8 + 1
	// RecordsMax is the most records of a file. Each takes some ten bytes of memory.
	RecordsMax = 10_000_000
)

// Key identifies a row by its content: gallery, external id, photo, and place among equal
// rows.
type Key [16]byte

// Person is the hash of an external id, 0 for a row without one.
type Person uint64

// Kind is what a record says.
type Kind byte

// The kinds of records.
const (
	Registered Kind = 'r' // the row made a subject
	Added      Kind = 'a' // the row gave a known subject another event
	Replaced   Kind = 'p' // the row replaced the event of a known subject
	Left       Kind = 'l' // a job could not register the row: it is not in
	Began      Kind = 'j' // Subject is the id of a job, Key the place of its photos
	Ended      Kind = 'e' // the job in the place Key is read to its end
)

// Record is what became of a row.
type Record struct {
	Key            Key
	Person         Person
	Kind           Kind
	Subject, Event id.UUID
	Quality        float64
	// Earlier is set by Find for a record that was there when the file was opened.
	Earlier bool
}

// State is an open file. It is for one goroutine at a time.
type State struct {
	file    *os.File
	n       uint32
	opened  uint32            // n after Open
	rows    map[uint64]uint32 // number of the record, by the head of the key
	persons map[Person]uint32 // a record with the person's subject
	jobs    []Record          // begun and not ended
}

// Open opens or creates the file for a gallery and locks it.
func Open(name string, gallery uint64) (*State, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err // the error names the file
	}
	s := &State{file: f, rows: map[uint64]uint32{}, persons: map[Person]uint32{}}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use: the same import is running", name), f.Close())
	}
	if err := s.load(gallery); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w", name, err), f.Close())
	}
	s.opened = s.n
	return s, nil
}

// load reads the records, and creates the header of a new file.
func (s *State) load(gallery uint64) error {
	want := fmt.Sprintf("%s%016x\n", header, gallery)
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size < int64(headerBytes) { // new, or its creation was cut off
		if err := s.file.Truncate(0); err != nil {
			return err
		}
		_, err := s.file.WriteAt([]byte(want), 0)
		return err
	}
	got := make([]byte, headerBytes)
	if _, err := s.file.ReadAt(got, 0); err != nil {
		return err
	}
	switch {
	case !bytes.HasPrefix(got, []byte(header)):
		return errors.New("is no state of an import that this version knows: name another report with --report")
	case string(got) != want:
		return errors.New("is the state of an import into another gallery, or with another API key: name another report with --report")
	}
	records := (size - int64(headerBytes)) / int64(recordBytes)
	if records > RecordsMax {
		return fmt.Errorf("has more than %d records: name another report with --report", RecordsMax)
	}
	if err := s.file.Truncate(int64(headerBytes) + records*int64(recordBytes)); err != nil {
		return err
	}
	in := io.NewSectionReader(s.file, int64(headerBytes), records*int64(recordBytes))
	line := make([]byte, 64*recordBytes)
	for int64(s.n) < records {
		part := line[:min(int64(len(line)), (records-int64(s.n))*int64(recordBytes))]
		if _, err := io.ReadFull(in, part); err != nil {
			return fmt.Errorf("can't be read: %w", err)
		}
		for ; len(part) > 0; part = part[recordBytes:] {
			if r, ok := decode(part[:recordBytes]); ok {
				s.note(r)
			}
			s.n++
		}
	}
	return nil
}

// note adds the record with the number n to the maps.
func (s *State) note(r Record) {
	switch r.Kind {
	case Began:
		s.jobs = append(s.jobs, r)
	case Ended:
		for i, j := range s.jobs {
			if j.Key == r.Key {
				s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
				break
			}
		}
	case Registered, Added, Replaced, Left:
		s.rows[head(r.Key)] = s.n
		if r.Person != 0 && r.Kind != Left {
			s.persons[r.Person] = s.n
		}
	}
}

func head(k Key) uint64 { return binary.BigEndian.Uint64(k[:]) }

// Find returns the record of a row.
func (s *State) Find(k Key) (Record, bool, error) {
	n, ok := s.rows[head(k)]
	if !ok {
		return Record{}, false, nil
	}
	r, ok, err := s.read(n)
	r.Earlier = n < s.opened
	return r, ok && r.Key == k, err
}

// Subject returns the subject that the import made or changed for a person.
func (s *State) Subject(p Person) (id.UUID, bool, error) {
	n, ok := s.persons[p]
	if !ok {
		return id.UUID{}, false, nil
	}
	r, ok, err := s.read(n)
	return r.Subject, ok, err
}

func (s *State) read(n uint32) (Record, bool, error) {
	line := make([]byte, recordBytes)
	if _, err := s.file.ReadAt(line, offset(n)); err != nil {
		return Record{}, false, fmt.Errorf("read the state: %w", err)
	}
	r, ok := decode(line)
	return r, ok, nil
}

func offset(n uint32) int64 { return int64(headerBytes) + int64(n)*int64(recordBytes) }

// Jobs returns the jobs that are begun and not ended.
func (s *State) Jobs() []Record { return append([]Record(nil), s.jobs...) }

// Len returns the number of records.
func (s *State) Len() int { return int(s.n) }

// Add appends a record. Sync makes it durable.
func (s *State) Add(r Record) error {
	if s.n >= RecordsMax {
		return fmt.Errorf("the state has %d records, the most: name another report with --report", s.n)
	}
	if _, err := s.file.WriteAt(encode(r), offset(s.n)); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	s.note(r)
	s.n++
	return nil
}

// Sync makes all records durable.
func (s *State) Sync() error {
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// Close makes all records durable and closes the file.
func (s *State) Close() error { return errors.Join(s.Sync(), s.file.Close()) }

func encode(r Record) []byte {
	b := fmt.Appendf(make([]byte, 0, recordBytes), "%x %016x %c %s %s %6.4f ", r.Key[:], uint64(r.Person), r.Kind, r.Subject, r.Event, min(max(r.Quality, 0), 9))
	return fmt.Appendf(b, "%08x\n", crc32.ChecksumIEEE(b))
}

// decode returns the record of a line, and false for a damaged one.
func decode(line []byte) (r Record, ok bool) {
	body, sum := line[:recordBytes-9], line[recordBytes-9:recordBytes-1]
	if line[recordBytes-1] != '\n' || fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) != string(sum) {
		return r, false
	}
	fields := bytes.Split(bytes.TrimSuffix(body, []byte(" ")), []byte(" "))
	if len(fields) != 6 || len(fields[0]) != 2*len(r.Key) || len(fields[2]) != 1 {
		return r, false
	}
	_, err1 := hex.Decode(r.Key[:], fields[0])
	person, err2 := strconv.ParseUint(string(fields[1]), 16, 64)
	r.Person, r.Kind = Person(person), Kind(fields[2][0])
	var err3, err4, err5 error
	r.Subject, err3 = id.Parse(string(fields[3]))
	r.Event, err4 = id.Parse(string(fields[4]))
	r.Quality, err5 = strconv.ParseFloat(string(fields[5]), 64)
	return r, errors.Join(err1, err2, err3, err4, err5) == nil
}
