package segment

import (
	"os"
	"path/filepath"
	"testing"

	"facet/internal/must"
)

func TestOnlySoundFilesAreSalvaged(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	store, err := Open(from, Options{Bytes: 4000})
	must.Do(t, err)
	var list []Record
	for i := range uint64(60) {
		list = append(list, plain(i+1, 400))
	}
	set, _, err := store.Build(nil, Change{Fresh: each(list)})
	must.Do(t, err)
	defer set.Release()
	if len(set.Parts()) < 4 {
		t.Fatalf("%d files are too few", len(set.Parts()))
	}
	path := func(i int) string { return filepath.Join(from, set.Parts()[i].File.Ref().Hash.String()+fileSuffix) }
	spoil := func(i int, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(path(i))
		if err == nil {
			err = os.WriteFile(path(i), change(b), 0o600)
		}
		must.Do(t, err)
	}
	spoil(1, func(b []byte) []byte { b[100] ^= 4; return b })
	spoil(2, func(b []byte) []byte { return b[:len(b)-1] })
	must.Do(t, os.WriteFile(filepath.Join(from, "7"+temporarySuffix), []byte("half"), 0o600))
	for range 2 { // again after a crash
		n, err := Salvage(from, to)
		if want := len(set.Parts()) - 2; err != nil || n != want {
			t.Fatalf("%d files, %v; want %d", n, err, want)
		}
	}
	again, err := Open(to, Options{})
	must.Do(t, err)
	for i, p := range set.Parts() {
		if got, want := again.Has(p.File.Ref().Hash), i != 1 && i != 2; got != want {
			t.Errorf("file %d is there: %v, want %v", i, got, want)
		}
	}
	if names, err := osDisk(to).list(); err != nil || len(names) != len(set.Parts())-2 {
		t.Errorf("files %v, %v", names, err)
	}
	if n, err := Salvage(filepath.Join(from, "none"), to); n != 0 || err != nil {
		t.Errorf("no folder: %d files, %v", n, err)
	}
}
