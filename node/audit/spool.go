package audit

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/tick"
	"facet/shard/auditlog"
)

// The spool is a folder of files, each a sequence of frames:
//
//	length 4 │ CRC-32C of the body 4 │ body: code 2 │ version 1 │ CBOR of a batch
//
// A file takes batches until it has spoolFileBytes or is spoolFileAge old. Then it is removed as soon as the logs
// have all its batches, so that no record outlives its retention there. A torn frame ends a file: its batch was not
// durable.
const (
	spoolFileBytes = 16 << 20
	spoolFileAge   = time.Hour
	// spoolInterval is how often the age of the current file is checked.
	spoolInterval = time.Minute
	frameHead     = 8
	frameMax      = codec.MessageMax
)

var (
	headBatch  = codec.Head{Code: 2, Version: 1}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// spooledBatch is a batch in a file.
type spooledBatch struct {
	Tenant  id.Tenant       `cbor:"1,keyasint"`
	Writer  auditlog.Writer `cbor:"2,keyasint"`
	Number  uint64          `cbor:"3,keyasint"`
	Entries []auditlog.New  `cbor:"4,keyasint"`
}

// spool keeps batches on the node's disk.
type spool struct {
	folder string
	signal chan struct{}

	mu sync.Mutex // guards the fields below; a disk may hang, and nobody waits for it with mu held
	// waiting are frames of records that wait for the disk, also after it failed.
	waiting []*frame
	// files has the number of frames of each file with records that the logs do not have yet.
	files   map[*spoolFile]int
	places  map[*frame]*spoolFile
	current *spoolFile
	spent   []*spoolFile // nothing of them is needed any more
	next    int          // only keepSpool uses it
	old     []string     // the files of former processes
}

type spoolFile struct {
	*os.File
	bytes int64
	begun time.Time
}

// openSpool opens the folder, which it makes if need be.
func openSpool(folder string) (*spool, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.spool"))
	if err != nil {
		return nil, err
	}
	slices.Sort(old)
	s := &spool{folder: folder, signal: make(chan struct{}, 1), files: make(map[*spoolFile]int), places: make(map[*frame]*spoolFile), old: old}
	if len(old) > 0 {
		if _, err := fmt.Sscanf(filepath.Base(old[len(old)-1]), "%d.spool", &s.next); err != nil {
			return nil, fmt.Errorf("a file of the audit spool has another name than facet gives: %s", old[len(old)-1])
		}
	}
	return s, nil
}

// wake makes keepSpool look for records.
func (s *spool) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// done forgets frames of records that their logs have.
func (s *spool) done(frames []*frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		f.gone = true
		if i := slices.Index(s.waiting, f); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
		}
		if file := s.places[f]; file != nil {
			delete(s.places, f)
			s.files[file]--
			s.collect(file)
		}
	}
}

// retire makes the next batches go to another file if the current one is full or old. Only the goroutine of
// keepSpool calls it, so that no write is in progress. The caller holds s.mu.
func (s *spool) retire() {
	f := s.current
	if f == nil || f.bytes < spoolFileBytes && time.Since(f.begun) < spoolFileAge {
		return
	}
	s.current = nil
	s.collect(f)
}

// collect leaves a file without batches to sweep, unless it takes more. The caller holds s.mu.
func (s *spool) collect(f *spoolFile) {
	if s.files[f] > 0 || f == s.current {
		return
	}
	delete(s.files, f)
	s.spent = append(s.spent, f)
	s.wake()
}

// sweep removes the spent files.
func (s *spool) sweep() {
	s.mu.Lock()
	spent := s.spent
	s.spent = nil
	s.mu.Unlock()
	for _, f := range spent {
		_ = f.Close()
		_ = os.Remove(f.Name()) // a file that stays is sent again after a restart, without effect
	}
}

// keepSpool writes records to the disk until no more come.
func (r *Recorder) keepSpool(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.spool.signal:
		case <-time.After(tick.Until(spoolInterval)):
		}
		r.mu.Lock()
		var frames []*frame
		for _, l := range r.dirty {
			frames = append(frames, l.frames()...)
		}
		r.dirty = nil
		r.mu.Unlock()
		r.spool.sweep()
		frames, err := r.spool.take(frames)
		if err == nil && len(frames) > 0 {
			err = r.spool.write(frames)
		}
		if err != nil {
			r.cfg.Logger.WarnContext(ctx, "the disk keeps no audit records; requests wait for a majority instead", "err", err)
			continue
		}
		for _, f := range frames {
			for _, w := range f.waiters {
				close(w.spooled)
			}
		}
	}
}

// take adds frames to those that wait, and returns all to be written. done finds them in their file. After
// an error they wait on.
func (s *spool) take(frames []*frame) ([]*frame, error) {
	s.mu.Lock()
	s.retire()
	list, current := append(s.waiting, frames...), s.current
	list = slices.DeleteFunc(list, (*frame).isGone)
	s.waiting = nil
	s.mu.Unlock()
	if len(list) == 0 {
		return nil, nil
	}
	var err error
	if current == nil {
		current, err = s.begin()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list = slices.DeleteFunc(list, (*frame).isGone) // meanwhile
	if err != nil {
		s.waiting = list
		return nil, err
	}
	s.current = current
	for _, b := range list {
		s.places[b] = current
		s.files[current]++
	}
	return list, nil
}

// isGone reports whether the log has all records of a frame. The caller holds spool.mu.
func (f *frame) isGone() bool { return f.gone }

// begin makes the next file.
func (s *spool) begin() (*spoolFile, error) {
	s.next++
	f, err := os.OpenFile(filepath.Join(s.folder, fmt.Sprintf("%012d.spool", s.next)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &spoolFile{File: f, begun: time.Now()}, nil
}

// write writes frames to the current file and waits for the disk.
func (s *spool) write(list []*frame) error {
	s.mu.Lock()
	f := s.current
	s.mu.Unlock()
	var frames []byte
	for _, b := range list {
		frames = appendFrame(frames, codec.Encode(headBatch, spooledBatch(b.Batch)))
	}
	begins := f.bytes == 0
	_, err := f.Write(frames)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && begins {
		err = syncFolder(s.folder)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.bytes += int64(len(frames))
	if err != nil {
		s.current = nil // what the file has after a failed write is unknown; the next batches get another one
		s.collect(f)
	}
	return err
}

func appendFrame(b, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli)), body...)
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// resend sends the batches that former processes left, and removes their files.
func (r *Recorder) resend(ctx context.Context) {
	for _, name := range r.spool.old {
		f, err := os.Open(name)
		if err != nil {
			r.cfg.Logger.ErrorContext(ctx, "records of former requests can't be read", "file", name, "err", err)
			continue
		}
		err = r.resendFile(f)
		_ = f.Close() // it was only read
		switch {
		case errors.Is(err, ErrLate):
			return // the file stays
		case errors.Is(err, errTorn):
			r.cfg.Logger.WarnContext(ctx, "a file of the audit spool ends in a torn batch, as after a loss of power; it is kept beside", "file", name+damaged)
			err = os.Rename(name, name+damaged)
		case err == nil:
			err = os.Remove(name)
		}
		if err != nil {
			r.cfg.Logger.ErrorContext(ctx, "a file of the audit spool stays; it is sent again after a restart, without effect", "file", name, "err", err)
		}
	}
}

// resendFile sends the batches of a file. Those of one writer that follow each other go together: the log takes many
// records as easily as one, and a node that dies again soon has sent the last ones, too. The error is errTorn,
// ErrLate or the disk's.
func (r *Recorder) resendFile(f io.Reader) error {
	joined := map[auditlog.Writer]auditlog.Batch{}
	err := readFrames(f, func(b auditlog.Batch) error {
		before := joined[b.Writer]
		if before.Number+uint64(len(before.Entries)) == b.Number {
			before.Entries = append(before.Entries, b.Entries...)
			joined[b.Writer] = before
			return nil
		}
		joined[b.Writer] = b
		return r.redeliver(before)
	})
	if err != nil && !errors.Is(err, errTorn) {
		return err
	}
	for _, b := range joined {
		if err := r.redeliver(b); err != nil {
			return err
		}
	}
	return err
}

// redeliver appends the records of a former process, in batches. If the log has forgotten that process, they come
// under another name.
func (r *Recorder) redeliver(b auditlog.Batch) error {
	for len(b.Entries) > 0 {
		part := b
		part.Entries = b.Entries[:batched(len(b.Entries), func(i int) int { return len(b.Entries[i].Sealed) })]
		switch err := r.deliver(part); {
		case errors.Is(err, auditlog.ErrWriter):
			l := newLine(b.Tenant)
			b.Writer, b.Number = l.writer, l.number
		case err != nil:
			return err
		default:
			b.Entries, b.Number = b.Entries[len(part.Entries):], b.Number+uint64(len(part.Entries))
		}
	}
	return nil
}

// errTorn is returned for a frame that is cut short or damaged.
var errTorn = errors.New("audit: a torn batch in the spool")

// damaged is the ending of a file that had a torn batch.
const damaged = ".damaged"

// readFrames calls take with each batch of a file. The error is errTorn, that of take or the disk's.
func readFrames(f io.Reader, take func(auditlog.Batch) error) error {
	in := bufio.NewReader(f)
	for {
		var head [frameHead]byte
		if _, err := io.ReadFull(in, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return torn(err)
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > frameMax {
			return errTorn
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return torn(err)
		}
		if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
			return errTorn
		}
		var b spooledBatch
		if err := codec.Decode(body, headBatch, &b); err != nil {
			return err
		}
		if err := take(auditlog.Batch(b)); err != nil {
			return err
		}
	}
}

// torn returns errTorn for the end of a file.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

// close closes the files. The batches that the logs do not have stay.
func (s *spool) close() error {
	s.sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for f, batches := range s.files {
		errs = append(errs, f.Close())
		if batches == 0 {
			errs = append(errs, os.Remove(f.Name()))
		}
	}
	clear(s.files)
	return errors.Join(errs...)
}
