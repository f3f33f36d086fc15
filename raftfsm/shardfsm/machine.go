package shardfsm

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/operation"
	"facet/shard"
	"facet/shard/auditlog"
	"facet/shard/claim"
	"facet/shard/job"
	"facet/shard/kernel"
	"facet/shard/merging"
	"facet/shard/segment"
)

// limits is the most operations that the machine remembers. Apply depends on it, so other
// numbers need new versions of the commands.
var limits = operation.Limits{Plain: 1 << 18, Keyed: 1 << 19}

// magic is the first bytes of a snapshot of this machine.
var magic = codec.Magic([]byte("facetshd"))

// Machine applies commands to a shard. Readers use Shard directly, at any time.
type Machine struct {
	shard  *shard.Shard
	jobs   *job.Book
	claims *claim.Book
	merges *merging.Book
	audit  *auditlog.Book

	// mu guards limits, index and ops. It is locked before the shard's own lock.
	mu     sync.Mutex
	limits operation.Limits
	index  uint64
	ops    *operation.Memory
}

var (
	_ raftfsm.Keeper = (*Machine)(nil)
	_ raftfsm.Stored = (*frozen)(nil)
)

// New returns the machine of an empty shard. table has the scores. arena, which machines
// share, holds the decrypted templates.
func New(table *score.Table, arena *kernel.Arena) *Machine { return newMachine(table, arena, limits) }

func newMachine(table *score.Table, arena *kernel.Arena, l operation.Limits) *Machine {
	m := &Machine{
		shard: shard.New(table, arena), jobs: job.New(), claims: claim.New(), merges: merging.New(), audit: auditlog.NewBook(),
		limits: l, ops: operation.New(l),
	}
	shard.Follow(m.shard, m)
	return m
}

// Shard returns the state that searches and listings read. Restore keeps the object.
func (m *Machine) Shard() *shard.Shard { return m.shard }

// Keep sets the store for the faces of events. Call it before any other method. Without a
// store the faces stay in memory.
func (m *Machine) Keep(store *segment.Store) { m.shard.Keep(store) }

// Operations counts the remembered operations.
func (m *Machine) Operations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops.Len()
}

// Remembers reports whether the machine still remembers an operation.
func (m *Machine) Remembers(op id.Operation) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.ops.Recall(op)
	return ok
}

// Replaced returns the subject of a remembered operation that replaced a face in a gallery.
func (m *Machine) Replaced(g id.Gallery, op id.Operation) (subject id.Subject, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done, known := m.ops.Recall(op)
	if !known || done.Kind != ReplaceEventOp.Code || done.Scope != g.UUID {
		return subject, false
	}
	return id.Subject{UUID: done.IDs[0]}, true
}

// Apply applies the command at index and returns the answer, as command.Apply does.
func (m *Machine) Apply(index uint64, cmd []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index = index
	return command.Apply(commands[:], m, index, cmd)
}

// Hold implements shard.Log.
func (m *Machine) Hold() (index uint64, release func()) {
	m.mu.Lock()
	return m.index, m.mu.Unlock
}

// Index returns the index of the last command that was applied.
func (m *Machine) Index() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index
}

// frozen is the machine's state at one index.
type frozen struct {
	machine *Machine
	index   uint64
	ops     *operation.View
	shard   *shard.View
	claims  *claim.View
	merges  *merging.View
	jobs    *job.View
	audit   *auditlog.View
}

func (m *Machine) freeze() *frozen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &frozen{m, m.index, m.ops.Freeze(), m.shard.Freeze(), m.claims.Freeze(), m.merges.Freeze(), m.jobs.Freeze(), m.audit.Freeze()}
}

// Freeze captures the state for a snapshot. The error is nil.
func (m *Machine) Freeze() (raftfsm.Frozen, error) { return m.freeze(), nil }

// Settle writes the events, entries of audit logs, operations and items of jobs that are in no file yet.
func (f *frozen) Settle(clean segment.Clean) (files []*segment.File, err error) {
	set, err := f.shard.Settle(clean)
	if err != nil {
		return nil, err
	}
	for _, p := range set.Parts() {
		files = append(files, p.File)
	}
	store := f.machine.shard.Store()
	if err := f.audit.Settle(store, clean); err != nil {
		return nil, err
	}
	if err := f.ops.Settle(store, clean); err != nil {
		return nil, fmt.Errorf("write operations: %w", err)
	}
	if err := f.jobs.Settle(store, clean); err != nil {
		return nil, fmt.Errorf("write jobs: %w", err)
	}
	return slices.Concat(files, f.audit.Files(), f.ops.Files(), f.jobs.Files()), nil
}

// Adopt lets the machine read settled events from the segments, and lets the next snapshot
// refer to the files of this one.
func (f *frozen) Adopt() {
	f.shard.Adopt()
	f.jobs.Adopt()
	f.audit.Adopt()
	f.machine.mu.Lock()
	defer f.machine.mu.Unlock()
	f.machine.ops.Adopt(f.ops)
}

// WriteTo writes the snapshot. After Settle the snapshot refers to files.
func (f *frozen) WriteTo(w io.Writer) (int64, error) {
	out := codec.NewWriter(w, magic, f.index)
	if err := f.write(out); err != nil {
		return out.Bytes(), err
	}
	_, err := out.Close()
	return out.Bytes(), err
}

func (f *frozen) write(out *codec.Writer) error {
	f.ops.Write(out)
	if err := f.shard.Write(out); err != nil {
		return err
	}
	f.claims.Write(out)
	f.merges.Write(out)
	f.jobs.Write(out)
	return f.audit.Write(out)
}

func (f *frozen) Release() {
	f.shard.Release()
	f.ops.Release()
	f.jobs.Release()
	f.audit.Release()
	f.ops, f.shard, f.claims, f.merges, f.jobs, f.audit = nil, nil, nil, nil, nil, nil
}

// Digest returns a hash of the state without the index. Machines that applied the same
// commands have the same digest, wherever their events lie. Digest reads the whole state.
// It returns zero if it can't read a segment, which also takes the group out of service.
func (m *Machine) Digest() [32]byte {
	f := m.freeze()
	defer f.Release()
	out := codec.NewWriter(io.Discard, magic, 0)
	if err := f.write(out); err != nil {
		return [32]byte{}
	}
	sum, err := out.Close()
	if err != nil {
		panic("bug: nothing can fail in writing to nowhere: " + err.Error())
	}
	return sum
}

// Restore reads a whole snapshot, and then replaces the state. On an error the state stays.
// The error is that of r, or wraps codec.ErrCorrupt, codec.ErrMalformed, segment.ErrCorrupt,
// shard.ErrSnapshot, claim.ErrSnapshot, merging.ErrSnapshot, operation.ErrSnapshot,
// job.ErrSnapshot or auditlog.ErrSnapshot.
func (m *Machine) Restore(r io.Reader) error {
	events, ops, jobs := shard.NewLoader(m.shard), operation.NewLoader(m.limits), job.NewLoader()
	claims, merges, audit := claim.NewLoader(), merging.NewLoader(), auditlog.NewLoader(m.shard.Store())
	defer events.Close()
	defer audit.Close()
	ops.Keep(m.shard.Store())
	jobs.Keep(m.shard.Store())
	index, err := codec.ReadAll(r, magic, func(record codec.Message) error { return load(record, events, claims, merges, ops, jobs, audit) })
	var memory *operation.Memory
	if err == nil {
		memory, err = ops.Memory()
	}
	if err == nil {
		err = errors.Join(events.Check(), claims.Check(), jobs.Check(), audit.Check())
	}
	if err != nil {
		return fmt.Errorf("restore shard: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.ops = index, memory
	m.shard.Replace(events)
	m.claims.Replace(claims)
	m.merges.Replace(merges)
	m.jobs.Replace(jobs)
	m.audit.Replace(audit)
	return nil
}

// load gives a record to the part that it belongs to.
func load(r codec.Message, parts ...interface {
	Load(codec.Message) (mine bool, err error)
},
) error {
	for _, part := range parts {
		if mine, err := part.Load(r); mine || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: unknown record %d", codec.ErrMalformed, r.Code)
}

// place names one generation of a gallery.
type place struct {
	gallery    id.Gallery
	generation uint32
}

// advance moves the clock to a command's time, removes the pending events that have expired
// by then, and returns the clock.
func (m *Machine) advance(time int64) int64 {
	now := m.ops.Advance(time)
	m.shard.ExpirePending(now - PendingMillis)
	return now
}

// once looks up an operation of a command with one of the codes. The status is Replayed,
// with the outcome, if the operation was done before, and Refused, with the outcome, if it was
// refused (Refuse). It is 0 if the operation can be done now. Any other status refuses it.
func (m *Machine) once(at place, name operation.Name, share Share, codes ...byte) (operation.Outcome, Status) {
	if err := m.shard.Check(at.gallery, at.generation); err != nil {
		return operation.Outcome{}, statusOf(err)
	}
	done, ok := m.ops.Recall(name.Op)
	same := ok && done.Scope == at.gallery.UUID && done.Name.Request == name.Request
	switch {
	case same && slices.Contains(codes, done.Kind):
		return done, Replayed
	case same && done.Kind == RefuseOp.Code:
		return done, Refused
	case ok:
		return done, Conflict
	case m.ops.Full(name):
		return done, OpsFull
	case !share.Tenant.IsZero() && m.ops.Owned(share.Tenant, name.Keyed) >= int(share.Writes):
		return done, OverWrites
	default:
		return done, 0
	}
}

// remember remembers an operation, against the tenant's share.
func (m *Machine) remember(g id.Gallery, name operation.Name, share Share, code byte, ids ...[16]byte) {
	o := operation.Outcome{Name: name, Kind: code, Scope: g.UUID, Owner: share.Tenant}
	copy(o.IDs[:], ids)
	m.ops.Remember(o)
}

// PendingMillis is how long an event stays pending, in the time of commands.
const PendingMillis = 30_000
