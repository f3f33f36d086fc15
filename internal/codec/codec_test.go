package codec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
)

type record struct {
	Subject id.Subject `cbor:"1,keyasint"`
	Raw     [16]byte   `cbor:"2,keyasint"`
	Count   uint32     `cbor:"3,keyasint,omitempty"`
	Tags    []uint32   `cbor:"4,keyasint,omitempty"`
	Share   float64    `cbor:"5,keyasint,omitempty"`
}

var (
	head  = codec.Head{Code: 9, Version: 2}
	magic = codec.Magic([]byte("facettst"))
)

func TestMessageHasDocumentedBytes(t *testing.T) {
	t.Parallel()
	r := record{Subject: id.Subject{UUID: id.UUID{0xab, 15: 1}}, Raw: [16]byte{2}, Count: 500, Tags: []uint32{1}, Share: .45}
	want := "0902" + // code, version
		"a5" + // five fields
		"01" + "50" + "ab" + strings.Repeat("00", 14) + "01" +
		"02" + "50" + "02" + strings.Repeat("00", 15) +
		"03" + "1901f4" +
		"04" + "8101" +
		"05" + "fb3fdccccccccccccd"
	got := codec.Encode(head, r)
	if hex.EncodeToString(got) != want {
		t.Fatalf("got  %x\nwant %s", got, want)
	}
	var back record
	must.Do(t, codec.Decode(got, head, &back))
	if again := codec.Encode(head, back); !bytes.Equal(again, got) {
		t.Fatalf("encoded again: %x", again)
	}
}

func TestDecodeRefusesMalformedBodies(t *testing.T) {
	t.Parallel()
	f := func(name, message string) {
		t.Helper()
		b, err := hex.DecodeString(message)
		must.Do(t, err)
		var r record
		if err := codec.Decode(b, head, &r); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
		}
	}
	f("nothing", "")
	f("no version", "09")
	f("no body", "0902")
	f("another code", "0802a0")
	f("another version", "0901a0")
	f("bytes after the body", "0902a000")
	f("an unknown field", "0902a10901")
	f("a field twice", "0902a203010302")
	f("an indefinite length", "0902bf0301ff")
	f("a tag", "0902c0a0")
	f("an array that promises 2³² elements", "0902a1049b0000000100000000")
	f("a cut id", "0902a101"+"4f"+strings.Repeat("00", 15))
	f("an id as text", "0902a101"+"7824"+hex.EncodeToString([]byte("ab000000-0000-0000-0000-000000000001")))
	f("a large number", "0902a1031b0000000100000000")
}

func stream(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 77)
	for i := range n {
		w.Record(head, record{Count: uint32(i), Tags: make([]uint32, i)})
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Bytes() != int64(b.Len()) {
		t.Fatalf("%d bytes said, %d written", w.Bytes(), b.Len())
	}
	return b.Bytes()
}

// readAll counts the records of a stream.
func readAll(b []byte) (n int, index uint64, err error) {
	r, err := codec.NewReader(bytes.NewReader(b), magic)
	if err != nil {
		return 0, 0, err
	}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, r.Index(), nil
		}
		if err != nil {
			return n, r.Index(), err
		}
		var v record
		if err := m.Decode(head, &v); err != nil {
			return n, r.Index(), err
		}
		n++
	}
}

func TestStreamReturnsItsRecords(t *testing.T) {
	t.Parallel()
	for _, want := range []int{0, 1, 40} {
		n, index, err := readAll(stream(t, want))
		if err != nil || n != want || index != 77 {
			t.Errorf("%d records: got %d at index %d, %v", want, n, index, err)
		}
	}
}

func TestDamagedStreamIsFound(t *testing.T) {
	t.Parallel()
	good := stream(t, 3)
	for i := range good {
		if _, _, err := readAll(good[:i]); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("cut after %d bytes: got %v, want ErrCorrupt", i, err)
		}
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			_, index, err := readAll(bad)
			if err == nil {
				t.Errorf("bit %d of byte %d changed: read without an error, index %d", bit, i, index)
			}
		}
	}
	if _, _, err := readAll(append(bytes.Clone(good), 0)); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("a byte more: got %v, want ErrCorrupt", err)
	}
}

type failing struct{ after int }

var errDisk = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestWriterReturnsFirstError(t *testing.T) {
	t.Parallel()
	w := codec.NewWriter(&failing{after: 100_000}, magic, 1)
	for range 3000 {
		w.Record(head, record{Tags: make([]uint32, 100)})
	}
	if _, err := w.Close(); !errors.Is(err, errDisk) {
		t.Fatalf("got %v, want the disk's error", err)
	}
}

func FuzzReaderNeverPanics(f *testing.F) {
	f.Add(stream(f, 2))
	f.Add([]byte("facettst"))
	f.Add(append(stream(f, 0)[:18], 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _, err := readAll(b)
		if err == nil && n > len(b) {
			t.Fatalf("%d records in %d bytes", n, len(b))
		}
	})
}
