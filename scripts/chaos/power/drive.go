package power

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

const (
	// sectorBytes is the unit that a disk writes as a whole.
	sectorBytes = 512
	// cacheBytes is the most unflushed bytes of a drive. It writes the oldest to
	// the medium before it takes more.
	cacheBytes = 128 << 20
)

// ErrOff is returned when a drive has no power.
var ErrOff = errors.New("power: the drive has no power")

// state is the state of a drive's power.
type state int

const (
	on    state = iota
	going       // power has failed and no caller knows yet: writes and flushes wait
	off         // writes and flushes have no effect
)

// Drive is a block device. It is safe for concurrent use.
type Drive struct {
	bytes  int64
	medium *os.File // the bytes that reads return: the medium with the cache on top

	// mu guards state, changed, cache, held, flushes and left.
	mu      sync.Mutex
	changed sync.Cond // state
	state   state
	cache   []change // since the last flush, oldest first
	held    int64    // bytes in cache
	flushes int
	left    int // calls until power fails, if a failure is planned
	planned bool
}

// change is one write in the cache.
type change struct {
	at         int64
	old, fresh []byte
}

// Loss describes what happened to the cache when power failed.
type Loss struct {
	// Writes is the number of writes in the cache. Kept is the number of writes that
	// reached the medium as a whole, Torn the number of those that reached it in part.
	Writes, Kept, Torn int
}

// Open returns a drive of this many zero bytes, which it keeps in folder dir.
func Open(dir string, bytes int64) (*Drive, error) {
	medium, err := os.CreateTemp(dir, "medium-*")
	if err != nil {
		return nil, fmt.Errorf("make a drive: %w", err)
	}
	err = errors.Join(os.Remove(medium.Name()), medium.Truncate(bytes)) // the file exists as long as it is open
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a drive: %w", err), medium.Close())
	}
	d := &Drive{bytes: bytes, medium: medium}
	d.changed.L = &d.mu
	return d, nil
}

// Close closes the drive. The caller must not use it any more.
func (d *Drive) Close() error {
	d.Off()
	return d.medium.Close()
}

// ReadAt reads the latest bytes written, flushed or not (io.ReaderAt).
func (d *Drive) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.medium.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read the drive: %w", err)
	}
	return n, err
}

// WriteAt writes to the cache (io.WriterAt).
func (d *Drive) WriteAt(b []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(b)) > d.bytes {
		return 0, fmt.Errorf("write %d bytes at %d of a drive of %d: %w", len(b), at, d.bytes, io.ErrShortWrite)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.powered() {
		return 0, ErrOff
	}
	c := change{at: at, old: make([]byte, len(b)), fresh: slices.Clone(b)}
	if _, err := d.medium.ReadAt(c.old, at); err != nil {
		return 0, fmt.Errorf("write the drive: %w", err)
	}
	if _, err := d.medium.WriteAt(b, at); err != nil {
		return 0, fmt.Errorf("write the drive: %w", err)
	}
	d.cache, d.held = append(d.cache, c), d.held+int64(len(b))
	for d.held > cacheBytes {
		d.held -= int64(len(d.cache[0].fresh))
		d.cache = d.cache[1:]
	}
	return len(b), nil
}

// Flush writes the cache to the medium.
func (d *Drive) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.powered() {
		return ErrOff
	}
	d.cache, d.held = nil, 0
	d.flushes++
	return nil
}

// Flushes returns the number of flushes.
func (d *Drive) Flushes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushes
}

// powered waits until the drive is on or off and reports whether it is on. The
// caller holds mu.
func (d *Drive) powered() bool {
	if d.planned && d.state == on {
		if d.left--; d.left < 0 {
			d.set(going)
		}
	}
	for d.state == going {
		d.changed.Wait()
	}
	return d.state == on
}

// CutAfter cuts the power after this many further writes and flushes, or when Cut
// is called. It returns at once.
func (d *Drive) CutAfter(calls int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.planned = calls, true
}

// Powered reports whether the drive has power.
func (d *Drive) Powered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == on
}

// Cut cuts the power: from now on nothing reaches the medium, and writes and flushes
// wait. Before the caller calls Off, it can kill the processes that would act on their
// results.
func (d *Drive) Cut() { d.turn(going) }

// Off lets the waiting writes and flushes return. From now on writes and flushes have
// no effect.
func (d *Drive) Off() { d.turn(off) }

func (d *Drive) turn(to state) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(to)
}

// set changes the state. The caller holds mu.
func (d *Drive) set(to state) {
	d.state, d.planned = to, false
	d.changed.Broadcast()
}

// On restores the power of a drive that is off and not in use. It chooses at random how
// many of the unflushed writes reach the medium: none, all, the first ones and a part
// of the next, or any of them, some only in part.
func (d *Drive) On(random *rand.Rand) (Loss, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != off {
		return Loss{}, errors.New("power: the drive is not off")
	}
	for _, c := range slices.Backward(d.cache) {
		if _, err := d.medium.WriteAt(c.old, c.at); err != nil {
			return Loss{}, fmt.Errorf("take back what was not flushed: %w", err)
		}
	}
	loss := Loss{Writes: len(d.cache)}
	first, share, tear := len(d.cache), 1.0, 0.0 // a share of the first writes is kept, and a part of those is torn
	switch random.IntN(4) {
	case 0:
		first = 0
	case 1:
		first, tear = random.IntN(first+1), 1
	case 2:
		share, tear = random.Float64(), .3
	}
	for i, c := range d.cache[:first] {
		if random.Float64() >= share {
			continue
		}
		torn := len(c.fresh) > sectorBytes && (tear < 1 || i == first-1) && random.Float64() < tear
		if err := d.land(c, torn, random); err != nil {
			return loss, err
		}
		if torn {
			loss.Torn++
		} else {
			loss.Kept++
		}
	}
	d.cache, d.held, d.state = nil, 0, on
	return loss, nil
}

// land writes a change to the medium, or only some of its sectors when torn.
func (d *Drive) land(c change, torn bool, random *rand.Rand) error {
	for from := 0; from < len(c.fresh); from += sectorBytes {
		if torn && random.IntN(2) == 0 {
			continue
		}
		to := min(from+sectorBytes, len(c.fresh))
		if _, err := d.medium.WriteAt(c.fresh[from:to], c.at+int64(from)); err != nil {
			return fmt.Errorf("keep what was not flushed: %w", err)
		}
	}
	return nil
}
