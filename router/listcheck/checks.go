package listcheck

import (
	"encoding/binary"
	"maps"
	"sync"
	"time"

	"facet/engine/score"
	"facet/internal/fair"
	"facet/internal/id"
	"facet/router/calls"
	"facet/shard/kernel"
	"facet/shard/scan"
)

// Limits of the checks of one node.
const (
	// RowsMax is the most rows with a face of one check, and of all checks of a tenant.
	RowsMax = 100_000
	// DoublesMax is the most rows that a row is said to be equal to.
	DoublesMax = 50
	// IdleMax is how long a check stays that nobody uses.
	IdleMax = 10 * time.Minute

	nodeRowsMax     = 3 * RowsMax
	nodeChecksMax   = 64
	tenantChecksMax = 8
	// busyRetry is the Retry-After when other checks fill the node.
	busyRetry = time.Minute
	// indexBytes is about what a row takes beside its template: its owner and its slot.
	indexBytes = 120
)

// Reasons of errors, for programs. They never change.
const (
	// ReasonUnknown is the reason for a check that ended, expired or was lost with its node.
	ReasonUnknown = "UnknownCheck"
	// ReasonFull is the reason for a check with RowsMax rows.
	ReasonFull = "CheckFull"
)

// Owner is the application that a check belongs to. Others can't use it.
type Owner struct {
	Tenant      id.Tenant      `cbor:"1,keyasint"`
	Application id.Application `cbor:"2,keyasint"`
}

// Row is a row's number in its list, and its face.
type Row struct {
	Number   uint32    `cbor:"1,keyasint"`
	Template []float32 `cbor:"2,keyasint"`
	Model    id.Model  `cbor:"3,keyasint"`
	// Threshold is the lowest score of a double, inclusive.
	Threshold int `cbor:"4,keyasint"`
}

// Double is another row that shows the same person.
type Double struct {
	Row   uint32 `cbor:"1,keyasint"`
	Score int    `cbor:"2,keyasint"`
}

// Checks are the checks that this node keeps. It is safe for concurrent use.
type Checks struct {
	table *score.Table

	places, rows *fair.Pool[id.Tenant] // shared by tenants

	// mu guards open and the rows of its checks. Whoever holds a check's mu may take it, not the
	// other way round.
	mu   sync.Mutex
	open map[id.UUID]*check
}

// check keeps the templates of one list.
type check struct {
	owner Owner
	arena *kernel.Arena
	idle  *time.Timer
	rows  int // guarded by Checks.mu

	mu     sync.Mutex // guards the fields below; held while a row is compared
	ended  bool
	used   time.Time
	model  id.Model
	matrix *kernel.Matrix // nil before the first row
	slots  map[uint32]int // by the number of the row
}

// New returns a node's checks. table has the scores of similarities.
func New(table *score.Table) *Checks {
	return &Checks{table: table, places: fair.NewPool[id.Tenant](nodeChecksMax), rows: fair.NewPool[id.Tenant](nodeRowsMax), open: map[id.UUID]*check{}}
}

// Unknown returns the error for a check that this node does not keep.
func Unknown() error {
	return calls.Errorf(calls.NotFound, ReasonUnknown, "there is no such check: it ended, nobody used it for %d minutes, or its node stopped; begin another one", int(IdleMax.Minutes()))
}

func busy(message string) error {
	return &calls.Error{Kind: calls.Busy, Message: message, RetryAfter: busyRetry}
}

// Begin begins a check. The error is Busy when the tenant has its share of them.
func (c *Checks) Begin(name id.UUID, owner Owner) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, k := range c.open {
		if k.owner.Tenant == owner.Tenant {
			own++
		}
	}
	if own >= tenantChecksMax || !c.places.Take(owner.Tenant, 1) {
		return busy("too many checks are open; end one, or try again later")
	}
	k := &check{owner: owner, arena: kernel.NewArena(0), used: time.Now(), slots: map[uint32]int{}}
	k.idle = time.AfterFunc(IdleMax, func() { c.expire(name, k) })
	c.open[name] = k
	return nil
}

// Compare adds a row to a check and returns the other rows that show the same person, the most
// similar first. A row that was sent before replaces itself.
func (c *Checks) Compare(name id.UUID, owner Owner, r Row) ([]Double, error) {
	k, err := c.find(name, owner)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, Unknown()
	}
	k.used = time.Now()
	k.idle.Reset(IdleMax)
	if _, again := k.slots[r.Number]; !again {
		if err := c.reserve(k); err != nil {
			return nil, err
		}
	}
	err = k.put(r)
	c.mu.Lock()
	c.rows.Give(owner.Tenant, int64(k.rows-len(k.slots))) // a row that could not be stored
	k.rows = len(k.slots)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return k.doubles(c.table, r)
}

// find returns an open check of owner.
func (c *Checks) find(name id.UUID, owner Owner) (*check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.open[name]
	if !ok || k.owner != owner {
		return nil, Unknown()
	}
	return k, nil
}

// reserve takes room for another row.
func (c *Checks) reserve(k *check) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, other := range c.open {
		if other.owner.Tenant == k.owner.Tenant {
			own += other.rows
		}
	}
	switch {
	case k.rows >= RowsMax:
		return calls.Errorf(calls.InvalidRequest, ReasonFull, "the check has %d rows with a face, the most it can have: split the list", RowsMax)
	case own >= RowsMax || !c.rows.Take(k.owner.Tenant, 1):
		return busy("other checks fill this node; end one, or try again later")
	}
	k.rows++
	return nil
}

// put stores the template of a row. The caller holds mu.
func (k *check) put(r Row) (err error) {
	if k.matrix == nil {
		k.model = r.Model
		if k.matrix, err = kernel.New(k.arena, len(r.Template), owners{}); err != nil {
			return err
		}
	}
	if err := id.SameModel(r.Model, k.model); err != nil {
		return err
	}
	var prepared kernel.Prepared
	defer prepared.Clear()
	if err := k.matrix.Prepare(&prepared, r.Template); err != nil {
		return err
	}
	if slot, again := k.slots[r.Number]; again {
		k.matrix.Erase(slot)
		delete(k.slots, r.Number)
	}
	slot, err := k.matrix.AddPrepared(r.Number+1, &prepared)
	if err == nil {
		k.slots[r.Number] = slot
	}
	return err
}

// owners are the rows of a list as the kernel's owners. The kernel counts from 1 on. The event of an
// owner has the number of its row.
type owners struct{}

// Owner returns an owner.
func (owners) Owner(number uint32) *kernel.Owner {
	o := new(kernel.Owner)
	binary.BigEndian.PutUint32(o.Event.UUID[:], number-1)
	return o
}

// Tags returns nothing: rows have no tags.
func (owners) Tags(*kernel.Owner) []uint32 { return nil }

// doubles returns the rows that show the person of r. The caller holds mu.
func (k *check) doubles(table *score.Table, r Row) ([]Double, error) {
	hits, err := k.matrix.Search(table, scan.Query{Probe: r.Template, Threshold: r.Threshold, Limit: DoublesMax + 1})
	if err != nil {
		return nil, err
	}
	list := make([]Double, 0, len(hits))
	for _, h := range hits {
		if row := binary.BigEndian.Uint32(h.Event.UUID[:]); row != r.Number {
			list = append(list, Double{row, h.Score})
		}
	}
	return list[:min(len(list), DoublesMax)], nil
}

// End ends a check and zeroes its templates.
func (c *Checks) End(name id.UUID, owner Owner) error {
	k, err := c.find(name, owner)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.end(name, k)
}

// expire ends a check that nobody uses.
func (c *Checks) expire(name id.UUID, k *check) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.used) >= IdleMax {
		_ = c.end(name, k) // the kernel unmaps what it mapped; nobody waits for the answer
	}
}

// end zeroes the templates of a check and returns their memory to the system. The caller
// holds check.mu.
func (c *Checks) end(name id.UUID, k *check) error {
	if k.ended {
		return Unknown()
	}
	k.ended = true
	k.idle.Stop()
	c.mu.Lock()
	delete(c.open, name)
	c.places.Give(k.owner.Tenant, 1)
	c.rows.Give(k.owner.Tenant, int64(k.rows))
	c.mu.Unlock()
	if k.matrix != nil {
		k.matrix.Free() // zeroes them
		k.matrix, k.slots = nil, nil
	}
	return k.arena.Close()
}

// Bytes returns the memory of the templates of all checks.
func (c *Checks) Bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.open {
		n += k.arena.Used() + int64(k.rows)*indexBytes
	}
	return n
}

// Close ends all checks. The caller makes no further calls.
func (c *Checks) Close() error {
	c.mu.Lock()
	all := maps.Clone(c.open)
	c.mu.Unlock()
	for name, k := range all {
		_ = c.End(name, k.owner) // it may expire meanwhile
	}
	return nil
}
