package power_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"facet/internal/must"
	"facet/scripts/chaos/power"
)

const driveBytes = 1 << 20

func open(t *testing.T) *power.Drive {
	t.Helper()
	d, err := power.Open(t.TempDir(), driveBytes)
	must.Do(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, d *power.Drive, at int64, b []byte) {
	t.Helper()
	if _, err := d.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d *power.Drive, at int64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := d.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	return b
}

// The other writes may be lost, or torn at sectors.
func TestFlushedWritesSurviveAPowerCut(t *testing.T) {
	t.Parallel()
	const block = 4096
	var sum power.Loss
	nothing, everything := 0, 0
	for seed := range uint64(200) {
		d, random := open(t), rand.New(rand.NewPCG(seed, 1))
		flushed := bytes.Repeat([]byte{1}, 8*block)
		write(t, d, 0, flushed)
		must.Do(t, d.Flush())
		for i := range int64(8) { // over it, and beside it
			write(t, d, i*block, bytes.Repeat([]byte{2}, block))
			write(t, d, (8+i)*block, bytes.Repeat([]byte{3}, block))
		}
		if b := read(t, d, 0, block); b[0] != 2 {
			t.Fatal("a reader does not see what was written last")
		}
		d.Cut()
		d.Off()
		loss, err := d.On(random)
		must.Do(t, err)
		now, kept, torn := read(t, d, 0, 16*block), 0, 0
		for i := range 16 {
			from, old, fresh := i*block, byte(1), byte(2)
			if i >= 8 {
				old, fresh = 0, 3
			}
			landed := 0
			for s := from; s < from+block; s += 512 {
				switch sector := now[s : s+512]; {
				case bytes.Equal(sector, bytes.Repeat([]byte{fresh}, 512)):
					landed++
				case !bytes.Equal(sector, bytes.Repeat([]byte{old}, 512)):
					t.Fatalf("seed %d: sector at %d holds neither what was flushed nor what was written", seed, s)
				}
			}
			switch landed {
			case 8:
				kept++
			case 0:
			default:
				torn++
			}
		}
		if loss.Writes != 16 || kept < loss.Kept || torn > loss.Torn {
			t.Fatalf("seed %d: told %+v, found %d kept and %d torn", seed, loss, kept, torn)
		}
		if kept+torn == 0 {
			nothing++
		} else if kept == 16 {
			everything++
		}
		sum.Kept, sum.Torn = sum.Kept+loss.Kept, sum.Torn+loss.Torn
	}
	if nothing == 0 || everything == 0 || sum.Torn == 0 {
		t.Errorf("of 200 losses %d kept nothing, %d everything; %d writes were torn", nothing, everything, sum.Torn)
	}
}

func TestFlushWithoutPowerIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	d := open(t)
	write(t, d, 0, []byte{9})
	d.Cut()
	answered := make(chan error, 1)
	go func() { answered <- d.Flush() }()
	select {
	case err := <-answered:
		t.Fatalf("a flush without power was answered: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	d.Off()
	if err := <-answered; !errors.Is(err, power.ErrOff) {
		t.Errorf("a flush without power: got %v, want ErrOff", err)
	}
	if _, err := d.WriteAt([]byte{7}, 0); !errors.Is(err, power.ErrOff) {
		t.Errorf("a write without power: got %v, want ErrOff", err)
	}
	if _, err := d.On(rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	if b := read(t, d, 0, 1); b[0] == 7 {
		t.Error("what was written without power is there")
	}
	if _, err := d.WriteAt(make([]byte, 2), driveBytes-1); err == nil {
		t.Error("a write behind the end is taken")
	}
}

func TestPowerFailsAtThePlannedCall(t *testing.T) {
	t.Parallel()
	for calls := range 5 {
		d := open(t)
		d.CutAfter(calls)
		done := make(chan int, 1)
		go func() {
			for i := 0; ; i++ {
				if _, err := d.WriteAt([]byte{1}, int64(i)); err != nil {
					done <- i
					return
				}
			}
		}()
		for d.Powered() {
			time.Sleep(time.Millisecond)
		}
		d.Off()
		if got := <-done; got != calls {
			t.Errorf("%d calls came through, want %d", got, calls)
		}
	}
}
