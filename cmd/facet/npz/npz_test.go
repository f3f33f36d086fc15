package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"

	"facet/internal/must"
)

// bytesOf returns the file of an array.
func bytesOf(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	must.Do(t, err)
	f, err := r.Open(name + ".npy")
	must.Do(t, err)
	data, err := io.ReadAll(f)
	must.Do(t, err)
	return data
}

// The bytes are those that numpy.save writes.
func TestArraysHaveBytesOfNumPy(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := New(&out)
	Put(w, "floats", []float32{1, -2, .5, 0, 0, float32(math.Inf(1))}, 3, 2)
	Put(w, "one", []int32{7})
	Put(w, "none", []float64{}, 4, 0)
	Put(w, "flags", []bool{true, false}, 2)
	w.PutTexts("texts", []string{"Ann", "", "Zoë"})
	must.Do(t, w.Close())
	for name, want := range map[string]struct{ head, data string }{
		"floats": {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f"},
		"one":    {"{'descr': '<i4', 'fortran_order': False, 'shape': (), }", "\x07\x00\x00\x00"},
		"none":   {"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 0), }", ""},
		"flags":  {"{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\x01\x00"},
		"texts":  {"{'descr': '|S4', 'fortran_order': False, 'shape': (3,), }", "Ann\x00\x00\x00\x00\x00Zo\xc3\xab"},
	} {
		got := bytesOf(t, out.Bytes(), name)
		head, ok := bytes.CutPrefix(got, []byte(magic))
		if n := len(got) - len(want.data); !ok || n%align != 0 || int(binary.LittleEndian.Uint16(head)) != n-len(magic)-2 || got[n-1] != '\n' {
			t.Errorf("%s: the header is %q", name, got)
		}
		if !bytes.HasPrefix(head[2:], []byte(want.head)) || !bytes.HasSuffix(got, []byte(want.data)) {
			t.Errorf("%s is %q, want %q and %q", name, got, want.head, want.data)
		}
	}
}

// broken refuses what is written after some bytes.
type broken struct{ left int }

var errFull = errors.New("the disk is full")

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestFailedWriteIsReported(t *testing.T) {
	t.Parallel()
	for left := range 40 {
		w := New(&broken{left: 1000 * left})
		Put(w, "a", make([]float64, 4000), 4000)
		w.PutTexts("b", make([]string, 7000))
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Errorf("full after %d bytes: %v", 1000*left, err)
		}
	}
}
