package auditlog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"facet/internal/id"
)

// State machines decide by these numbers. Other numbers need new versions of the commands.
const (
	// EntriesMax is the most entries in a batch, BatchBytesMax the most bytes of their contents.
	EntriesMax    = 4096
	BatchBytesMax = 512 << 10
	// SealedMax is the largest sealed content of an entry in bytes.
	SealedMax = 32 << 10
	// NoteMax is the largest checkpoint of a former log in bytes.
	NoteMax = 4 << 10
	// firstMax is the most entries with which a log begins.
	firstMax = 1

	// numberMax is the largest number of a writer's entry.
	numberMax = 1 << 62
	// writersMax is the most writers that a log knows. The one that wrote longest ago is forgotten.
	writersMax = 1024
	// intentsMax is the most open intents of a log.
	intentsMax = 1 << 16
	// logsMax is the most logs of a shard.
	logsMax = 1 << 16
)

// Errors that a state machine tells apart.
var (
	// ErrUnknown is returned when the shard has no log of the tenant.
	ErrUnknown = errors.New("auditlog: the tenant has no log on this shard")
	// ErrWriter is returned when entries of the writer are missing before a batch, or the writer
	// was forgotten.
	ErrWriter = errors.New("auditlog: the batch does not follow the writer's last entry")
	// ErrFull is returned when there are too many logs or open intents.
	ErrFull = errors.New("auditlog: no room for more logs or open intents")
	// ErrMalformed is returned for a batch or an entry beyond the bounds.
	ErrMalformed = errors.New("auditlog: the batch is out of bounds")
	// ErrNoTile is returned when a tree has no such hash or tile.
	ErrNoTile = errors.New("auditlog: no such tile")
)

// Writer names a process of a node.
type Writer [16]byte

// Request is a client's request, in intents and their outcomes.
type Request [16]byte

// Entry is one leaf of a log.
type Entry struct {
	// Leaf is the hash of the content as RFC 6962 defines it.
	Leaf Hash `cbor:"1,keyasint"`
	// Sealed is the content under the tenant's audit key. Once the retention has passed, it is empty.
	Sealed []byte `cbor:"2,keyasint,omitempty"`
}

// New is an entry to append.
type New struct {
	Entry
	// Opens is the request of an intent. Closes is the request whose outcome this entry has.
	Opens  Request `cbor:"3,keyasint,omitzero"`
	Closes Request `cbor:"4,keyasint,omitzero"`
	// IfOpen leaves the entry out unless the intent of Closes is open.
	IfOpen bool `cbor:"5,keyasint,omitempty"`
}

// Batch is what a writer appends at once.
type Batch struct {
	Tenant id.Tenant
	Writer Writer
	// Number is the first entry's among the writer's entries for this log, which count from 1.
	Number  uint64
	Entries []New
}

// Appended is the place of a batch in its log.
type Appended struct {
	// First is the place of the first entry that the batch added, from 0.
	First uint64
	// Replayed reports that the log had all entries of the batch already. First is then that of the
	// writer's last batch.
	Replayed bool
}

// written is the last batch of a writer: the number of its last entry, and the place of its first.
type written struct {
	Number uint64 `cbor:"1,keyasint"`
	First  uint64 `cbor:"2,keyasint"`
}

// log is the audit log of one tenant.
type log struct {
	tenant id.Tenant
	tree
	// bare is the number of entries, from the first on, whose contents are gone.
	bare uint64
	// former is the last checkpoint of the log before a restoration, or nil.
	former []byte
	// tail has the entries from tailFrom on, which are in no file yet.
	tail     []Entry
	tailFrom uint64
	files    files
	writers  map[Writer]written
	// intents are the open ones: the number of the entry by its request.
	intents map[Request]uint64
}

func newLog(tenant id.Tenant) *log {
	return &log{tenant: tenant, writers: make(map[Writer]written), intents: make(map[Request]uint64)}
}

// Book has the logs of a shard. Writes come from one goroutine, the state machine's. Reads may run
// beside them.
type Book struct {
	mu    sync.RWMutex // guards state and what it refers to
	state *state
}

type state struct {
	logs map[id.Tenant]*log
	// tailBytes is the size of the contents of all tails.
	tailBytes int64
}

func newState() *state { return &state{logs: make(map[id.Tenant]*log)} }

// NewBook returns a book without logs.
func NewBook() *Book { return &Book{state: newState()} }

// Begin begins the log of a tenant with its first entries, unless there is one. former is the last known
// checkpoint of the log that it follows after a restoration, or nil.
func (k *Book) Begin(tenant id.Tenant, former []byte, first ...Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.state.logs[tenant] != nil:
		return nil
	case len(k.state.logs) >= logsMax:
		return ErrFull
	case len(former) > NoteMax || len(first) > firstMax || slices.ContainsFunc(first, func(e Entry) bool { return len(e.Sealed) == 0 || len(e.Sealed) > SealedMax }):
		return ErrMalformed
	}
	l := newLog(tenant)
	l.former = slices.Clone(former)
	for _, e := range first {
		l.tail = append(l.tail, e)
		l.add(e.Leaf)
	}
	k.state.tailBytes += size(first)
	k.state.logs[tenant] = l
	return nil
}

// Drop removes the log of a tenant, if there is one.
func (k *Book) Drop(tenant id.Tenant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.state.logs[tenant]; l != nil {
		delete(k.state.logs, tenant)
		k.state.tailBytes -= size(l.tail)
		l.files.set.Release()
	}
}

// Append appends the entries of a batch that the log does not have yet. It keeps their contents.
func (k *Book) Append(b Batch) (Appended, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.state.logs[b.Tenant]
	if l == nil {
		return Appended{}, ErrUnknown
	}
	if err := check(b); err != nil {
		return Appended{}, err
	}
	last := l.writers[b.Writer]
	end := b.Number + uint64(len(b.Entries)) - 1
	switch {
	case end <= last.Number:
		return Appended{last.First, true}, nil
	case b.Number > last.Number+1:
		return Appended{}, ErrWriter
	}
	b.Entries = b.Entries[last.Number+1-b.Number:]
	if !l.fits(b.Entries) {
		return Appended{}, ErrFull
	}
	first := l.size
	for _, e := range b.Entries {
		if _, open := l.intents[e.Closes]; e.IfOpen && !open {
			continue
		}
		if e.Closes != (Request{}) {
			delete(l.intents, e.Closes)
		}
		if e.Opens != (Request{}) {
			l.intents[e.Opens] = l.size
		}
		l.tail = append(l.tail, e.Entry)
		k.state.tailBytes += int64(len(e.Sealed))
		l.add(e.Leaf)
	}
	l.writers[b.Writer] = written{end, first}
	l.forgetWriter()
	return Appended{First: first}, nil
}

// check returns ErrMalformed for a batch beyond the bounds.
func check(b Batch) error {
	bytes := 0
	for _, e := range b.Entries {
		if len(e.Sealed) == 0 || len(e.Sealed) > SealedMax {
			return ErrMalformed
		}
		bytes += len(e.Sealed)
	}
	if b.Number == 0 || b.Number > numberMax || len(b.Entries) == 0 || len(b.Entries) > EntriesMax || bytes > BatchBytesMax {
		return ErrMalformed
	}
	return nil
}

// fits reports whether the log has room for the intents among entries.
func (l *log) fits(entries []New) bool {
	opened := 0
	for _, e := range entries {
		if e.Opens != (Request{}) {
			opened++
		}
	}
	return len(l.intents)+opened <= intentsMax
}

// forgetWriter forgets the writer that wrote longest ago, if there are too many.
func (l *log) forgetWriter() {
	if len(l.writers) <= writersMax {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(l.writers)), func(a, b Writer) int {
		return cmp.Or(cmp.Compare(l.writers[a].First, l.writers[b].First), slices.Compare(a[:], b[:]))
	})
	delete(l.writers, oldest)
}

// Expire removes the contents of a log's first entries, up to and without the one at before.
func (k *Book) Expire(tenant id.Tenant, before uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.state.logs[tenant]
	if l == nil {
		return ErrUnknown
	}
	l.bare = max(l.bare, min(before, l.size))
	if l.bare > l.tailFrom {
		l.tail = slices.Clone(l.tail) // a frozen state may share the old one
		gone := l.tail[:l.bare-l.tailFrom]
		k.state.tailBytes -= size(gone)
		for i := range gone {
			gone[i].Sealed = nil
		}
	}
	return nil
}

func size(entries []Entry) (n int64) {
	for _, e := range entries {
		n += int64(len(e.Sealed))
	}
	return n
}

// TailBytes returns the size of the contents that are in memory because no file has them yet.
func (k *Book) TailBytes() int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.tailBytes
}

// Tenants returns the tenants that have logs, in the order of their ids.
func (k *Book) Tenants() []id.Tenant {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(k.state.logs), compareTenants)
}

// Held returns how many entries of each log have contents.
func (k *Book) Held() map[id.Tenant]uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	held := make(map[id.Tenant]uint64, len(k.state.logs))
	for t, l := range k.state.logs {
		held[t] = l.size - l.bare
	}
	return held
}

func compareTenants(a, b id.Tenant) int { return slices.Compare(a.UUID[:], b.UUID[:]) }

// Head describes a log.
type Head struct {
	Size uint64 `cbor:"1,keyasint"`
	Root Hash   `cbor:"2,keyasint"`
	// Bare is the number of entries, from the first on, that have no contents any more.
	Bare uint64 `cbor:"3,keyasint,omitempty"`
	// Former is the last known checkpoint of the log that this one follows after a restoration.
	Former []byte `cbor:"4,keyasint,omitempty"`
}

// Head returns the head of a tenant's log, or ErrUnknown.
func (k *Book) Head(tenant id.Tenant) (Head, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	l := k.state.logs[tenant]
	if l == nil {
		return Head{}, ErrUnknown
	}
	return Head{l.size, l.root(), l.bare, l.former}, nil
}

// Intent is an open intent: a write whose outcome no entry has yet.
type Intent struct {
	Request Request
	// Index is the number of its entry.
	Index uint64
}

// Intents returns a log's open intents in order, at most limit.
func (k *Book) Intents(tenant id.Tenant, limit int) []Intent {
	k.mu.RLock()
	defer k.mu.RUnlock()
	l := k.state.logs[tenant]
	if l == nil {
		return nil
	}
	var list []Intent
	for r, at := range l.intents { // sorted below
		list = append(list, Intent{r, at})
	}
	slices.SortFunc(list, func(a, b Intent) int { return cmp.Compare(a.Index, b.Index) })
	return list[:min(limit, len(list))]
}

// Hashes returns the hashes of a tile: those of level at places first to first+most-1, or as many as
// there are. Level 0 has the leaves. A level has the hashes of complete tiles of the level below.
func (k *Book) Hashes(tenant id.Tenant, level int, first uint64, most int) ([]Hash, error) {
	if level == 0 {
		entries, err := k.Read(tenant, first, most)
		hashes := make([]Hash, len(entries))
		for i, e := range entries {
			hashes[i] = e.Leaf
		}
		return hashes, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	l := k.state.logs[tenant]
	if l == nil {
		return nil, ErrUnknown
	}
	row, _ := l.row(level)
	if first > uint64(len(row)) {
		return nil, fmt.Errorf("%w: hash %d of level %d", ErrNoTile, first, level)
	}
	row = row[first:]
	return slices.Clone(row[:min(most, len(row))]), nil
}

// Read returns the log's entries from number first on, at most most. The error is ErrUnknown, wraps
// segment.ErrCorrupt, or is the disk's.
func (k *Book) Read(tenant id.Tenant, first uint64, most int) ([]Entry, error) {
	k.mu.RLock()
	l := k.state.logs[tenant]
	if l == nil {
		k.mu.RUnlock()
		return nil, ErrUnknown
	}
	tail, from, bare, set := l.tail, l.tailFrom, l.bare, l.files.set.Retain()
	k.mu.RUnlock()
	defer set.Release()
	var list []Entry
	if first < from {
		var err error
		if list, err = read(set, first, min(uint64(max(most, 0)), from-first)); err != nil {
			return nil, fmt.Errorf("read audit log of %s: %w", tenant, err)
		}
		for i := range list {
			if first+uint64(i) < bare {
				list[i].Sealed = nil
			}
		}
		first = from
	}
	for _, e := range tail[min(first-from, uint64(len(tail))):] {
		if len(list) >= most {
			break
		}
		list = append(list, e)
	}
	return list, nil
}
