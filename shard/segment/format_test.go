package segment

import (
	"encoding/hex"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func TestStoredBytesStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	s, err := open(newMemoryDisk(), Options{})
	must.Do(t, err)
	w, err := s.Create()
	must.Do(t, err)
	list := []Record{
		{Sequence: 3, Clear: []byte("clear"), Sealed: []byte("sealed")},
		{Sequence: 700, Clear: []byte("deleted")},
		{Sequence: 1 << 40, Clear: []byte{}, Sealed: []byte("another")},
	}
	for _, r := range list {
		w.Add(r)
	}
	f, err := w.Close()
	must.Do(t, err)
	defer f.Release()
	b, err := io.ReadAll(f.Reader())
	must.Do(t, err)
	name := filepath.Join("testdata", "segment.txt")
	got := f.Ref().Hash.String() + "\n" + hex.Dump(b)
	if *rewrite {
		must.Do(t, os.WriteFile(name, []byte(got), 0o600))
	}
	want, err := os.ReadFile(name)
	must.Do(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the bytes of a file (-want +got):\n%s", diff)
	}
	if read, err := readAll(b, nil); err != nil || !same(read, list) {
		t.Errorf("read: %v, %v", read, err)
	}
}
