package auditlog

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/codec"
	"facet/shard/segment"
)

// Loader builds a state from the records of a snapshot, beside the state that the book has. Close
// releases what it holds, also after Replace.
type Loader struct {
	state   *state
	store   *segment.Store // nil if there may be no files
	current *log
	// head is the record of current, parts are its files so far.
	head  logRecord
	parts []segment.Part
}

// NewLoader returns an empty loader. store has the files. Without a store there may be no files.
func NewLoader(store *segment.Store) *Loader { return &Loader{state: newState(), store: store} }

// Close releases the files, unless Replace took them over.
func (l *Loader) Close() {
	for _, p := range l.parts {
		p.File.Release()
	}
	l.parts = nil
	if l.state != nil {
		l.state.release()
	}
	l.state = nil
}

func (s *state) release() {
	for _, l := range s.logs { // any order will do
		l.files.set.Release()
	}
}

// Load reads the next record; mine is false if the record belongs to another package. The error wraps
// codec.ErrMalformed, segment.ErrCorrupt, segment.ErrMissing or ErrSnapshot, or is the disk's.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headLog.Code:
		return true, codec.Take(m, headLog, l.log)
	case headHashes.Code:
		return true, l.part(m, func() error { return codec.Take(m, headHashes, l.hashes) })
	case headFile.Code:
		return true, l.part(m, func() error { return codec.Take(m, headFile, l.file) })
	case headWriters.Code:
		return true, l.part(m, func() error { return codec.Take(m, headWriters, l.writers) })
	case headIntents.Code:
		return true, l.part(m, func() error { return codec.Take(m, headIntents, l.intents) })
	case headEntries.Code:
		return true, l.part(m, func() error { return codec.Take(m, headEntries, l.entries) })
	default:
		return false, nil
	}
}

// part reads a record that follows the head of its log.
func (l *Loader) part(m codec.Message, take func() error) error {
	if l.current == nil {
		return fmt.Errorf("%w: record %d has no log", ErrSnapshot, m.Code)
	}
	return take()
}

func (l *Loader) log(r logRecord) error {
	if err := l.Check(); err != nil {
		return err
	}
	if bytes.Compare(r.Tenant.UUID[:], l.head.Tenant.UUID[:]) <= 0 || r.Bare > r.Size || len(r.Former) > NoteMax || len(l.state.logs) >= logsMax {
		return fmt.Errorf("%w: the log of %s", ErrSnapshot, r.Tenant)
	}
	l.head, l.current = r, newLog(r.Tenant)
	l.current.bare, l.current.former = r.Bare, r.Former
	l.state.logs[r.Tenant] = l.current
	return nil
}

func (l *Loader) hashes(r hashesRecord) error {
	c := l.current
	if len(c.tail) > 0 || len(l.parts) > 0 || r.Level < 0 || r.Level > len(c.above)+1 || len(r.Hashes)%tlog.HashSize != 0 {
		return fmt.Errorf("%w: hashes of level %d", ErrSnapshot, r.Level)
	}
	for b := range slices.Chunk(r.Hashes, tlog.HashSize) {
		h := Hash(b)
		switch {
		case r.Level == 0:
			c.leaves = append(c.leaves, h)
		case r.Level > len(c.above):
			c.above = append(c.above, []Hash{h})
		default:
			c.above[r.Level-1] = append(c.above[r.Level-1], h)
		}
	}
	return nil
}

func (l *Loader) file(r fileRecord) error {
	if l.store == nil || len(l.current.tail) > 0 {
		return fmt.Errorf("%w: file %s", ErrSnapshot, r.Hash)
	}
	f, err := l.store.File(r.Hash)
	if err != nil {
		return err
	}
	l.parts = append(l.parts, segment.Part{File: f})
	b := f.Batch()
	if b.First != l.current.tailFrom+1 || b.Records != b.Last-b.First+1 || r.Bare > b.Records {
		return fmt.Errorf("%w: file %s has entries %d to %d", ErrSnapshot, r.Hash, b.First, b.Last)
	}
	l.current.files.list = append(l.current.files.list, file{b, r.Bare})
	l.current.tailFrom = b.Last
	l.current.size = b.Last
	return nil
}

func (l *Loader) entries(r entriesRecord) error {
	if len(l.parts) > 0 || l.current.size+uint64(len(r.Entries)) > l.head.Size {
		return fmt.Errorf("%w: entries from %d on", ErrSnapshot, l.current.size)
	}
	for _, e := range r.Entries {
		if len(e.Sealed) > SealedMax || (len(e.Sealed) == 0) != (l.current.size < l.head.Bare) {
			return fmt.Errorf("%w: entry %d", ErrSnapshot, l.current.size)
		}
		l.current.tail = append(l.current.tail, e)
		l.current.add(e.Leaf)
		l.state.tailBytes += int64(len(e.Sealed))
	}
	return nil
}

func (l *Loader) writers(r writersRecord) error {
	if len(r.Names) != len(r.Batches) || len(l.current.writers)+len(r.Names) > writersMax {
		return fmt.Errorf("%w: %d writers", ErrSnapshot, len(r.Names))
	}
	for i, name := range r.Names {
		l.current.writers[name] = r.Batches[i]
	}
	return nil
}

func (l *Loader) intents(r intentsRecord) error {
	if len(r.Requests) != len(r.Indexes) || len(l.current.intents)+len(r.Requests) > intentsMax {
		return fmt.Errorf("%w: %d intents", ErrSnapshot, len(r.Requests))
	}
	for i, request := range r.Requests {
		if r.Indexes[i] >= l.head.Size {
			return fmt.Errorf("%w: an intent is entry %d", ErrSnapshot, r.Indexes[i])
		}
		l.current.intents[request] = r.Indexes[i]
	}
	return nil
}

// Check returns an error that wraps ErrSnapshot unless the last log is complete.
func (l *Loader) Check() error {
	if l.current == nil {
		return nil
	}
	c := l.current
	if c.size != l.head.Size || !c.complete() {
		return fmt.Errorf("%w: the log of %s has %d entries of %d, or other hashes", ErrSnapshot, c.tenant, c.size, l.head.Size)
	}
	if len(l.parts) > 0 {
		set, err := segment.NewSet(l.parts)
		l.parts = nil
		if err != nil {
			return err
		}
		c.files.set = set
	}
	l.current = nil
	return nil
}

// complete reports whether the tree has the hashes of its size, and those of each level fit the level
// below.
func (t *tree) complete() bool {
	want := t.size
	if uint64(len(t.leaves)) != want%TileWidth {
		return false
	}
	for k := range t.above {
		want /= TileWidth
		if uint64(len(t.above[k])) != want || want == 0 {
			return false
		}
		if k > 0 {
			for i, h := range t.above[k] {
				if join(t.above[k-1][i*TileWidth:(i+1)*TileWidth]) != h {
					return false
				}
			}
		}
	}
	return want/TileWidth == 0
}

// Replace replaces the book's state by that of a checked loader.
func (k *Book) Replace(l *Loader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.release()
	k.state, l.state = l.state, nil
}
