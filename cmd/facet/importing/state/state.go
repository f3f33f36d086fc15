// Package state keeps in a file which rows of an import are in, so that the same command
// goes on where an earlier run ended. Each row is one record of fixed length behind a
// header. A torn record at the end is cut off, a damaged one counts as missing.
package state

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"facet/internal/id"
)

const (
	header      = "facet import 2 " // and hexadecimal digits: 16 of the gallery and 32 of the run
	headerBytes = len(header) + 16 + 1 + 32 + 1
	recordBytes = 32 + 1 + 16 + 1 + 1 + 1 + 36 + 1 + 36 + 1 + 6 + 1 + 16 + 1 + 16 + 1 + 16 + 1 + 8 + 1 + 8 + 1
	// formerHeader begins a state of facet 0.3 and older, which identifies no run.
	formerHeader = "facet import 1 "
	// RecordsMax is the most records of a file. Each takes about a hundred bytes of memory.
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
	Seen       Kind = 's' // At is the service's time of the gallery's newest change, after the records before
)

// Record is what became of a row.
type Record struct {
	Key            Key
	Person         Person
	Kind           Kind
	Subject, Event id.UUID
	Quality        float64
	// Details is the hash of tags, expiry and user data, and File that of person and file name.
	Details, File uint64
	// At is when the service answered.
	At time.Time
	// Replaces is the number of the record whose event the row has replaced, plus 1; 0 is none.
	Replaces uint32
	// Number is set when the record is read.
	Number uint32
	// Earlier is set by Find for a record that was there when the file was opened.
	Earlier bool
}

// State is an open file. It is for one goroutine at a time.
type State struct {
	// Run identifies the run that the file belongs to. New reports that Open made the file.
	Run [16]byte
	New bool

	file    *os.File
	n       uint32
	opened  uint32            // n after Open
	rows    map[uint64]uint32 // number of the record, by the head of the key
	persons map[Person]uint32 // the newest record of the person
	before  map[uint32]uint32 // the record of the same person before a record
	gone    map[uint32]bool   // records whose event a later one has replaced
	files   map[uint64]bool   // of the rows that are in
	seen    []seen            // in order
	jobs    []Record          // begun and not ended
}

// seen is the service's time of the gallery's newest change when there were n records.
type seen struct {
	n  uint32
	at time.Time
}

// Open opens or creates the file for a gallery and locks it.
func Open(name string, gallery uint64) (*State, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err // the error names the file
	}
	s := &State{file: f, rows: map[uint64]uint32{}, persons: map[Person]uint32{}, before: map[uint32]uint32{}, gone: map[uint32]bool{}, files: map[uint64]bool{}}
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
	want := fmt.Sprintf("%s%016x ", header, gallery)
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	got := make([]byte, min(size, int64(headerBytes)))
	if _, err := s.file.ReadAt(got, 0); err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(got, []byte(formerHeader)):
		return errors.New("is of an earlier version of facet: end the import with that version, or delete the file and run the command again: " +
			"it then registers photos without an external id again")
	case size < int64(headerBytes): // new, or its creation was cut off
		s.New = size == 0
		_, _ = rand.Read(s.Run[:]) // never fails
		if err := s.file.Truncate(0); err != nil {
			return err
		}
		_, err := s.file.WriteAt(fmt.Appendf(nil, "%s%x\n", want, s.Run), 0)
		return err
	case !bytes.HasPrefix(got, []byte(header)):
		return errors.New("is no state of an import that this version knows: name another report with --report")
	case !bytes.HasPrefix(got, []byte(want)):
		return errors.New("is the state of an import into another gallery, or with another API key: name another report with --report")
	}
	if _, err := hex.Decode(s.Run[:], got[len(want):headerBytes-1]); err != nil {
		return errors.New("is damaged: delete it and run the command again: it then registers photos without an external id again")
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
	case Seen:
		s.seen = append(s.seen, seen{s.n, r.At})
	case Registered, Added, Replaced, Left:
		s.rows[head(r.Key)] = s.n
		if r.Replaces > 0 {
			s.gone[r.Replaces-1] = true
		}
		if r.Kind == Left {
			return
		}
		s.files[r.File] = true
		if r.Person != 0 {
			if last, ok := s.persons[r.Person]; ok {
				s.before[s.n] = last
			}
			s.persons[r.Person] = s.n
		}
	}
}

// HasFile reports whether a row with the hash File is in.
func (s *State) HasFile(file uint64) bool { return s.files[file] }

// SeenAfter returns the service's time of the gallery's newest change when a run had ended
// after the record was added. ok is false if none has.
func (s *State) SeenAfter(r Record) (at time.Time, ok bool) {
	i, _ := slices.BinarySearchFunc(s.seen, r.Number, func(e seen, n uint32) int { return cmp.Compare(e.n, n) })
	if i == len(s.seen) {
		return at, false
	}
	return s.seen[i].at, true
}

// Sees notes the service's time of the gallery's newest change, unless no row has come in since
// the last note.
func (s *State) Sees(at time.Time) error {
	if s.n == 0 || len(s.seen) > 0 && s.seen[len(s.seen)-1].n == s.n-1 {
		return nil
	}
	return s.Add(Record{Kind: Seen, At: at})
}

func head(k Key) uint64 { return binary.BigEndian.Uint64(k[:]) }

// Last returns the number of the newest record of a row, plus 1, or 0.
func (s *State) Last(k Key) uint32 {
	n, ok := s.rows[head(k)]
	if !ok {
		return 0
	}
	return n + 1
}

// Find returns the newest record of a row. ok is false if there is none, or another row has
// replaced its event.
func (s *State) Find(k Key) (Record, bool, error) {
	n, ok := s.rows[head(k)]
	if !ok || s.gone[n] {
		return Record{}, false, nil
	}
	r, ok, err := s.read(n)
	return r, ok && r.Key == k, err
}

// Has reports whether the import made or changed a person.
func (s *State) Has(p Person) bool { _, ok := s.persons[p]; return ok }

// Subject returns the subject that the import made or changed for a person.
func (s *State) Subject(p Person) (id.UUID, bool, error) {
	n, ok := s.persons[p]
	if !ok {
		return id.UUID{}, false, nil
	}
	r, ok, err := s.read(n)
	return r.Subject, ok, err
}

// Former returns what earlier runs have recorded of a person, the newest first, without records
// whose event a later one has replaced.
func (s *State) Former(p Person) (all []Record, err error) {
	if s.opened == 0 {
		return nil, nil
	}
	for n, ok := s.persons[p]; ok; n, ok = s.before[n] {
		if n >= s.opened || s.gone[n] {
			continue
		}
		r, good, err := s.read(n)
		if err != nil {
			return nil, err
		}
		if good {
			all = append(all, r)
		}
	}
	return all, nil
}

func (s *State) read(n uint32) (Record, bool, error) {
	line := make([]byte, recordBytes)
	if _, err := s.file.ReadAt(line, offset(n)); err != nil {
		return Record{}, false, fmt.Errorf("read the state: %w", err)
	}
	r, ok := decode(line)
	r.Number, r.Earlier = n, n < s.opened
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
	b := fmt.Appendf(make([]byte, 0, recordBytes), "%x %016x %c %s %s %6.4f %016x %016x %016x %08x ", r.Key[:], uint64(r.Person), r.Kind, r.Subject, r.Event,
		min(max(r.Quality, 0), 9), r.Details, r.File, uint64(r.At.UnixMilli()), r.Replaces)
	return fmt.Appendf(b, "%08x\n", crc32.ChecksumIEEE(b))
}

// decode returns the record of a line, and false for a damaged one.
func decode(line []byte) (r Record, ok bool) {
	body, sum := line[:recordBytes-9], line[recordBytes-9:recordBytes-1]
	if line[recordBytes-1] != '\n' || fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) != string(sum) {
		return r, false
	}
	fields := bytes.Split(bytes.TrimSuffix(body, []byte(" ")), []byte(" "))
	if len(fields) != 10 || len(fields[0]) != 2*len(r.Key) || len(fields[2]) != 1 {
		return r, false
	}
	var errs [5]error
	_, errs[1] = hex.Decode(r.Key[:], fields[0])
	number := func(i, bits int) (n uint64) {
		n, err := strconv.ParseUint(string(fields[i]), 16, bits)
		errs[0] = errors.Join(errs[0], err)
		return n
	}
	r.Person, r.Kind = Person(number(1, 64)), Kind(fields[2][0])
	r.Subject, errs[2] = id.Parse(string(fields[3]))
	r.Event, errs[3] = id.Parse(string(fields[4]))
	r.Quality, errs[4] = strconv.ParseFloat(string(fields[5]), 64)
	r.Details, r.File, r.At, r.Replaces = number(6, 64), number(7, 64), time.UnixMilli(int64(number(8, 64))), uint32(number(9, 32))
	return r, errors.Join(errs[:]...) == nil
}
