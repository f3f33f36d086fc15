package entry

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

// search returns the record of a usual search with n candidates.
func search(n int) *Record {
	r := New(Request, time.UnixMilli(1_795_000_000_000))
	r.Application, r.Key, r.Holder = id.Application{UUID: id.UUID{1, 15: 9}}, "FACETABCDEFGHIJKLMNO", "door 3, north"
	r.From(netip.MustParseAddr("10.1.2.3"))
	r.ID, r.Operation = [16]byte{2, 15: 3}, "POST /v1.1/face/search"
	r.Gallery, r.Threshold, r.Limit, r.Probe = id.Gallery{UUID: id.UUID{3, 15: 1}}, 7001, 10, Name{9}
	r.Status, r.Micros = 200, 14_000
	for i := range n {
		r.Add(Name{byte(i + 1)}, 9000-i)
	}
	return r
}

func TestRecordComesBack(t *testing.T) {
	t.Parallel()
	r := search(10)
	r.Purpose, r.Reason, r.Searched, r.Subjects, r.Quality = "case 4711", "none", []uint64{1, 99}, make([]byte, 32), 812
	r.Case, r.Verdict, r.Former = id.UUID{4, 15: 2}, Different, "facet/a/b\n1\n"
	got, err := Decode(r.Encode())
	if diff := cmp.Diff(r, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	s := got.Show(5)
	if s.Number != 5 || s.Source != "10.1.2.3" || *s.Threshold != 7000 || len(s.Candidates) != 10 || s.Candidates[1].Score != 8999 || len(s.Subjects) != 2 || s.Kind != "request" ||
		s.Case != r.Case.String() || s.Verdict != "different" || s.Former != r.Former {
		t.Errorf("shown as %+v", s)
	}
}

// A text from outside that is no UTF-8, or is cut within a character, must not make the record unreadable.
func TestHostileTextStaysReadable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", TextMax-1) + "ü"
	for in, want := range map[string]string{"case 4711": "case 4711", "b\xfcro": "b?ro", "\xff\xfe": "?", long: long[:TextMax-1] + "?", long + long: long[:TextMax-1] + "?"} {
		r := New(Request, time.UnixMilli(1))
		r.Purpose, r.Reason = Text(in), Text(in)
		got, err := Decode(r.Encode())
		if err != nil || got.Purpose != want || got.Reason != want {
			t.Errorf("%q comes back as %+v, %v", in, got, err)
		}
	}
}

// A stored record has 84 bytes more: the leaf hash (32), the seal (28) and two places in a file (24).
func TestRecordsAreSmall(t *testing.T) {
	t.Parallel()
	const stored = 84
	if n := stored + len(search(10).Encode()); n > 600 {
		t.Errorf("a search with ten candidates takes %d bytes", n)
	}
	list := New(Request, time.UnixMilli(1_795_000_000_000))
	list.Application, list.Key, list.Holder, list.ID = search(0).Application, search(0).Key, search(0).Holder, search(0).ID
	list.Source, list.Gallery, list.Operation, list.Status, list.Micros = search(0).Source, search(0).Gallery, "GET /v1.1/subjects", 200, 900
	if n := stored + len(list.Encode()); n > 250 {
		t.Errorf("a record without candidates takes %d bytes", n)
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add(search(3).Encode())
	f.Add([]byte{1, 1, 0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Fatal(err)
			}
			return
		}
		r.Show(0)
		if again, err := Decode(r.Encode()); err != nil || !bytes.Equal(again.Encode(), r.Encode()) {
			t.Fatalf("%x comes back as another record: %v", b, err)
		}
	})
}
