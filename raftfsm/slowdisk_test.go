package raftfsm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/raftfsm/logstore"
)

// openUnsynced is logstore.OpenDisk without fsync.
func openUnsynced(dir string) (logstore.Disk, error) { return logstore.OpenUnsynced(dir) }

// slowDisk is a disk whose appends can be held up, slowed down or made to fail.
type slowDisk struct {
	logstore.Disk
	mu      sync.Mutex
	gate    chan struct{} // nil: open
	reached chan struct{} // closed when an append waits at the gate
	delay   time.Duration
	fail    error
}

func newSlowDisk(d logstore.Disk) *slowDisk { return &slowDisk{Disk: d} }

// hang holds up every append until release is called. reached is closed when the first
// append waits.
func (d *slowDisk) hang() (release func(), reached <-chan struct{}) {
	gate, at := make(chan struct{}), make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate, d.reached = gate, at
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gate = nil
		close(gate)
	}), at
}

// slow lets every append, vote and cut take at least this long.
func (d *slowDisk) slow(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

// breakDown lets every append, vote and cut fail from now on.
func (d *slowDisk) breakDown(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

func (d *slowDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

func (d *slowDisk) StoreLogs(l []*raft.Log) error {
	d.mu.Lock()
	gate := d.gate
	if gate != nil && d.reached != nil {
		close(d.reached)
		d.reached = nil
	}
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if err := d.late(); err != nil {
		return err
	}
	return d.Disk.StoreLogs(l)
}

func (d *slowDisk) Save(change func(*logstore.Record)) error {
	if err := d.late(); err != nil {
		return err
	}
	return d.Disk.Save(change)
}

func (d *slowDisk) DeleteRange(from, to uint64) error {
	if err := d.late(); err != nil {
		return err
	}
	return d.Disk.DeleteRange(from, to)
}

// late waits as long as a write takes, and returns the disk's error.
func (d *slowDisk) late() error {
	d.mu.Lock()
	err, delay := d.fail, d.delay
	d.mu.Unlock()
	time.Sleep(delay)
	return err
}
