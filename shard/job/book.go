package job

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/segment"
)

// State machines decide by these numbers. Other numbers need new versions of the commands.
const (
	// ItemsMax is the most items in a batch.
	ItemsMax = 100_000
	// SealedMax is the largest sealed part of an item, in bytes.
	SealedMax = 8 << 10

	itemsPerShardMax   = 1 << 20
	batchesPerShardMax = 1 << 16
	// batchesPerGalleryMax keeps one gallery from using up its shard's batches.
	batchesPerGalleryMax = 1 << 13

	// keptMillis is how long a batch stays after its last item is finished, and unfinishedMillis
	// how long one stays whose items have not all come.
	keptMillis       = 30 * 24 * 60 * 60 * 1000
	unfinishedMillis = 10 * 60 * 1000
)

// Errors that a state machine tells apart.
var (
	// ErrUnknown is returned when there is no such batch of this gallery and generation.
	ErrUnknown = errors.New("job: unknown batch")
	// ErrConflict is returned when another request began the batch.
	ErrConflict = errors.New("job: the batch was begun with another request")
	// ErrFull is returned when the shard or the gallery keeps the most records that it may.
	ErrFull = errors.New("job: no room for more records")
	// ErrJobs and ErrItems are returned when the shard keeps the most batches, or items of
	// batches, that the tenant may have.
	ErrJobs  = errors.New("job: the tenant has its most batches")
	ErrItems = errors.New("job: the tenant has its most items")
	// ErrPlace is returned when earlier items are missing, or there are too many.
	ErrPlace = errors.New("job: items are out of place")
)

// Kind is what the items of a batch are.
type Kind uint8

// The kinds of batches. The numbers are stored.
const (
	// Registrations: each item is a file to register.
	Registrations Kind = 0
	// Duplicates: each item is a block of events to compare with their gallery. A gallery has one
	// such batch: the next one replaces it.
	Duplicates Kind = 1
	// Different: each item is two subjects of a gallery that are different people (Put).
	Different Kind = 2
	// Cases: each item is a doubtful verification that people review (Put).
	Cases Kind = 3
)

// Name names a batch and the gallery it must belong to.
type Name struct {
	Gallery    id.Gallery
	Generation uint32
	Batch      id.Batch
}

// Share is the most that a tenant may have. The zero Share bounds and counts nothing.
type Share struct {
	Tenant id.Tenant
	Jobs   uint32
	Items  uint32
}

// Owned holds the numbers of batches and items of a tenant.
type Owned struct{ Jobs, Items int }

// Begin makes a batch.
type Begin struct {
	Name        Name
	Application id.Application
	// Request is a hash of the client's request.
	Request [16]byte
	// Total is how many items will come, 1 to ItemsMax.
	Total uint32
	// Time is now, in milliseconds since 1970.
	Time int64
	// Share is that of the gallery's tenant.
	Share Share
	Kind  Kind
	// Holder is a keyed hash of who began it, or zero.
	Holder id.UUID
}

// Result is the outcome of one item.
type Result struct {
	Index uint32 `cbor:"1,keyasint"`
	// Attempts is how often the item was tried, from 1.
	Attempts uint32 `cbor:"2,keyasint"`
	// Success reports that Subject and Event were made.
	Success bool       `cbor:"3,keyasint,omitempty"`
	Subject id.Subject `cbor:"4,keyasint"`
	Event   id.Event   `cbor:"5,keyasint"`
	// Sealed is an Outcome, sealed by SealOutcome, or for Duplicates a list of pairs, sealed by
	// SealPairs.
	Sealed []byte `cbor:"6,keyasint,omitempty"`
	// Pairs is how many pairs Sealed has.
	Pairs uint32 `cbor:"7,keyasint,omitempty"`
}

// Record is one item and its result, which is nil while it is unfinished.
type Record struct {
	Index  uint32  `cbor:"1,keyasint"`
	Sealed []byte  `cbor:"2,keyasint"` // an Item, sealed by SealItem
	Result *Result `cbor:"3,keyasint,omitempty"`
}

// Progress is how far a batch has come.
type Progress struct {
	Application id.Application
	// Total is the number of items, Items how many of them have come, Done how many are finished.
	Total, Items, Done uint32
	// Open reports that all items have come, so that work may begin.
	Open   bool
	Kind   Kind
	Holder id.UUID
}

// batch is one bulk registration, or one comparison of a gallery with itself.
type batch struct {
	name        Name
	kind        Kind
	tenant      id.Tenant // zero if it counts for none
	application id.Application
	holder      id.UUID
	request     [16]byte
	total       uint32
	open        bool
	done        uint32
	// low is the first item that may be unfinished; all before it are finished.
	low uint32
	// touched is when it last changed. Expiry counts from it until the batch is open, and again
	// after it has ended.
	touched int64
	// records are replaced, never changed, because views share them.
	records *btree.Map[uint32, *record]
	// since is the last sequence of any batch's records before this batch began, and last that of its own since it
	// was loaded.
	since, last uint64
}

// record is a Record with the sequence of its write. Sequences are no part of the state.
type record struct {
	Record
	sequence uint64
}

func newBatch(n Name, total uint32, since uint64) *batch {
	return &batch{name: n, total: total, records: new(btree.Map[uint32, *record]), since: since}
}

func (b *batch) ended() bool { return b.open && b.done == b.total }

// expired reports whether the batch must be dropped.
func (b *batch) expired(now int64) bool {
	switch {
	case !b.open:
		return now-b.touched > unfinishedMillis
	case b.ended():
		return now-b.touched > keptMillis
	default:
		return false
	}
}

// Book holds the batches of a shard. Its methods may be called from any goroutine; writes take
// effect in the order of their calls.
type Book struct {
	// mu guards state. It is never held across a call out of this package.
	mu    sync.RWMutex
	state *state
}

type state struct {
	batches map[id.Batch]*batch
	// working are the batches that are open and unfinished, few among many.
	working map[id.Batch]*batch
	// galleries counts the batches of each gallery; items counts all records that batches may have.
	galleries map[id.Gallery]int
	items     int
	// owned counts the batches and items of each tenant, without zeroes.
	owned map[id.Tenant]Owned
	// sequence is that of the last record. files are those of the newest snapshot.
	sequence uint64
	files    []segment.Batch
}

// New returns an empty book.
func New() *Book { return &Book{state: newState()} }

func newState() *state {
	return &state{
		batches: map[id.Batch]*batch{}, working: map[id.Batch]*batch{}, galleries: map[id.Gallery]int{}, owned: map[id.Tenant]Owned{},
	}
}

func (s *state) find(n Name) (*batch, error) {
	b := s.batches[n.Batch]
	if b == nil || b.name != n {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, n.Batch)
	}
	return b, nil
}

func (s *state) add(b *batch) {
	s.batches[b.name.Batch] = b
	s.galleries[b.name.Gallery]++
	s.items += int(b.total)
	s.own(b.tenant, 1, int(b.total))
}

// own adds to the numbers of a tenant.
func (s *state) own(t id.Tenant, jobs, items int) {
	if t.IsZero() {
		return
	}
	of := s.owned[t]
	of.Jobs, of.Items = of.Jobs+jobs, of.Items+items
	if s.owned[t] = of; of == (Owned{}) {
		delete(s.owned, t)
	}
}

// over returns the error for a batch of total items that exceeds a share.
func (s *state) over(of Share, total uint32) error {
	switch has := s.owned[of.Tenant]; {
	case of.Tenant.IsZero():
		return nil
	case has.Jobs >= int(of.Jobs):
		return ErrJobs
	case has.Items+int(total) > int(of.Items):
		return ErrItems
	default:
		return nil
	}
}

// set adds a record to b, or replaces the one with its index.
func (s *state) set(b *batch, r Record) {
	s.sequence++
	b.last = s.sequence
	b.records.Set(r.Index, &record{r, s.sequence})
}

func (s *state) settle(b *batch) {
	if b.open && !b.ended() {
		s.working[b.name.Batch] = b
	} else {
		delete(s.working, b.name.Batch)
	}
}

func (s *state) drop(b *batch) {
	delete(s.batches, b.name.Batch)
	delete(s.working, b.name.Batch)
	s.items -= int(b.total)
	s.own(b.tenant, -1, -int(b.total))
	if s.galleries[b.name.Gallery]--; s.galleries[b.name.Gallery] == 0 {
		delete(s.galleries, b.name.Gallery)
	}
}

// dropDuplicates drops the batch of that kind that a gallery has.
func (s *state) dropDuplicates(g id.Gallery) {
	for _, b := range s.batches { // any order will do
		if b.kind == Duplicates && b.name.Gallery == g {
			s.drop(b)
		}
	}
}

// Begin makes a batch that stays invisible until Open. Repeating it returns the batch's progress. One
// of the kind Duplicates drops the gallery's earlier one.
// The error wraps
// ErrConflict, ErrFull, ErrJobs, ErrItems or ErrPlace.
func (k *Book) Begin(c Begin) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	if b := s.batches[c.Name.Batch]; b != nil {
		if b.name != c.Name || b.request != c.Request || b.total != c.Total {
			return Progress{}, ErrConflict
		}
		if !b.open {
			b.touched = max(b.touched, c.Time)
		}
		return b.progress(), nil
	}
	switch {
	case c.Total == 0 || c.Total > ItemsMax:
		return Progress{}, ErrPlace
	case s.items+int(c.Total) > itemsPerShardMax, len(s.batches) >= batchesPerShardMax,
		s.galleries[c.Name.Gallery] >= batchesPerGalleryMax:
		return Progress{}, ErrFull
	}
	if err := s.over(c.Share, c.Total); err != nil {
		return Progress{}, err
	}
	if c.Kind == Duplicates {
		s.dropDuplicates(c.Name.Gallery)
	}
	b := newBatch(c.Name, c.Total, s.sequence)
	b.kind, b.holder = c.Kind, c.Holder
	b.tenant, b.application, b.request, b.touched = c.Share.Tenant, c.Application, c.Request, c.Time
	s.add(b)
	return b.progress(), nil
}

func (b *batch) progress() Progress {
	return Progress{Application: b.application, Total: b.total, Items: uint32(b.records.Len()), Done: b.done, Open: b.open, Kind: b.kind, Holder: b.holder}
}

// Add adds items to a batch, from index first on. It skips items that have come before. The error
// wraps ErrUnknown or ErrPlace; then nothing changes.
func (k *Book) Add(n Name, first uint32, sealed [][]byte, time int64) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := k.state.find(n)
	if err != nil {
		return Progress{}, err
	}
	have := uint32(b.records.Len())
	if first > have || uint64(first)+uint64(len(sealed)) > uint64(b.total) {
		return Progress{}, fmt.Errorf("%w: %d from %d on, after %d of %d", ErrPlace, len(sealed), first, have, b.total)
	}
	for i, text := range sealed {
		if index := first + uint32(i); index >= have {
			k.state.set(b, Record{Index: index, Sealed: text})
		}
	}
	if !b.open {
		b.touched = max(b.touched, time)
	}
	return b.progress(), nil
}

// Open lets work on a complete batch begin. The error wraps ErrUnknown, or ErrPlace while items are
// missing.
func (k *Book) Open(n Name, time int64) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := k.state.find(n)
	if err != nil {
		return Progress{}, err
	}
	if have := uint32(b.records.Len()); have != b.total {
		return Progress{}, fmt.Errorf("%w: %d of %d", ErrPlace, have, b.total)
	}
	if !b.open {
		b.open, b.touched = true, max(b.touched, time)
		k.state.settle(b)
	}
	return b.progress(), nil
}

// Finish records the results of items. A finished item keeps its result, and a result without an
// item is ignored. The error wraps ErrUnknown.
func (k *Book) Finish(n Name, results []Result, time int64) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := k.state.find(n)
	if err != nil {
		return Progress{}, err
	}
	for _, r := range results {
		old, ok := b.records.Get(r.Index)
		if !b.open || !ok || old.Result != nil {
			continue
		}
		k.state.set(b, Record{Index: r.Index, Sealed: old.Sealed, Result: &r})
		b.done++
		b.touched = max(b.touched, time)
	}
	for b.low < b.total {
		if r, ok := b.records.Get(b.low); !ok || r.Result == nil {
			break
		}
		b.low++
	}
	k.state.settle(b)
	return b.progress(), nil
}

// Redact replaces the results of finished items. It changes nothing else, not even the time from which
// the batch is kept. The error wraps ErrUnknown.
func (k *Book) Redact(n Name, results []Result) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := k.state.find(n)
	if err != nil {
		return Progress{}, err
	}
	for _, r := range results {
		if old, ok := b.records.Get(r.Index); ok && old.Result != nil {
			k.state.set(b, Record{Index: r.Index, Sealed: old.Sealed, Result: &r})
		}
	}
	return b.progress(), nil
}

// Drop drops a batch. The error wraps ErrUnknown.
func (k *Book) Drop(n Name) (Progress, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := k.state.find(n)
	if err != nil {
		return Progress{}, err
	}
	k.state.drop(b)
	return b.progress(), nil
}

// Fence drops the batches of all generations of a gallery before generation.
func (k *Book) Fence(g id.Gallery, generation uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.galleries[g] == 0 {
		return
	}
	for _, b := range k.state.batches { // any order will do
		if b.name.Gallery == g && b.name.Generation < generation {
			k.state.drop(b)
		}
	}
}

// Expire drops the batches that have expired at now, in milliseconds since 1970.
func (k *Book) Expire(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.state.batches { // any order will do
		if b.expired(now) {
			k.state.drop(b)
		}
	}
}

// Due reports whether Expire would drop a batch.
func (k *Book) Due(now int64) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, b := range k.state.batches {
		if b.expired(now) {
			return true
		}
	}
	return false
}
