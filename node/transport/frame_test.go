package transport

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func nothing(int) error { return nil }

func TestLengthAloneTakesNoMemory(t *testing.T) {
	// Not parallel: it counts what the process allocates.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		_, err := readFrame(bytes.NewReader([]byte{0x01, 0xff, 0xff, 0xff, 1, 2, 3}), BodyBytesMax, nothing)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v, want an unexpected end", err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / 10; got > 256<<10 {
		t.Errorf("a frame that says 32 MiB and has 3 bytes took %d bytes", got)
	}
}

func TestMillisecondsRoundUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]uint32{
		-time.Second: 1, 0: 1, time.Nanosecond: 1, time.Millisecond: 1, 1500 * time.Microsecond: 2,
		time.Minute: 60000, 100 * 365 * 24 * time.Hour: math.MaxUint32,
	} {
		if got := millis(d); got != want {
			t.Errorf("%v: got %d ms, want %d", d, got, want)
		}
	}
}

// A request is read as it was written, or refused.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x05\x04echobody"))
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x05\xffecho"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parseRequest(b)
		if err != nil {
			return
		}
		if q.timeout == 0 {
			q.timeout = time.Millisecond // a writer turns no time into this
		}
		var w bytes.Buffer
		must.Do(t, writeRequest(&w, q))
		frame, err := readFrame(&w, BodyBytesMax+frameExtraMax, nothing)
		if err != nil {
			t.Fatalf("read back: %v", err)
		}
		back, err := parseRequest(frame)
		if err != nil || !cmp.Equal(back, q, cmp.AllowUnexported(request{})) {
			t.Fatalf("got %+v %v, want %+v", back, err, q)
		}
	})
}

// An answer is a body or one kind of error.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x07\x00body"))
	f.Add([]byte("\x00\x00\x00\x07\x01\x00\x00\x00\x01\x09text"))
	f.Add([]byte("\x00\x00\x00\x07\x01\xff\xff\xff\xfftext"))
	f.Add([]byte("\x00\x00\x00\x07\x02busy"))
	f.Add([]byte("\x00\x00\x00\x08\x00another"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := parseAnswer(b, 7)
		if err == nil {
			return
		}
		kinds := 0
		var remote *RemoteError
		for _, is := range []bool{errors.As(err, &remote), errors.Is(err, ErrNotSent), errors.Is(err, ErrOutcomeUnknown)} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Fatalf("%v is of %d kinds", err, kinds)
		}
		if remote != nil && (len(remote.Message) > messageBytesMax || len(remote.Payload) > ErrorBytesMax) {
			t.Fatalf("an error of %d + %d bytes", len(remote.Message), len(remote.Payload))
		}
	})
}

func FuzzFrameIsBounded(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		got, err := readFrame(bytes.NewReader(b), limit, nothing)
		if err == nil && (len(got) > limit || !bytes.Equal(got, b[4:4+len(got)])) {
			t.Fatalf("got %x of %x", got, b)
		}
	})
}
