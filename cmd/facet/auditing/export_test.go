package auditing_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/auditing/audittest"
	"facet/internal/must"
	"facet/node/audit/entry"
)

// filled returns a log with n entries, written into a folder, and its server.
func filled(t testing.TB, n int) (*audittest.Log, string, *audittest.Server) {
	t.Helper()
	l, dir := audittest.New(t, 1), t.TempDir()
	l.Fill(t, n, "entry")
	l.Write(t, dir)
	return l, dir, audittest.Serve(t, dir)
}

func source(t testing.TB, where, ca string) auditing.Source {
	t.Helper()
	src, err := auditing.OpenSource(t.Context(), where, ca)
	must.Do(t, err)
	return src
}

func folder(t testing.TB, dir string) *auditing.Folder {
	t.Helper()
	f, err := auditing.MakeFolder(dir)
	must.Do(t, err)
	t.Cleanup(f.Close)
	return f
}

func export(t testing.TB, src auditing.Source, to, key string) auditing.Exported {
	t.Helper()
	sum, err := auditing.Export(t.Context(), src, folder(t, to), key, func(int64) {})
	must.Do(t, err)
	return sum
}

func verified(t testing.TB, dir, key string, witnessed ...auditing.Witnessed) auditing.Verified {
	t.Helper()
	v, err := auditing.Verify(t.Context(), folder(t, dir), key, witnessed)
	must.Do(t, err)
	return v
}

// files returns the content of each file below dir.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[rel] = string(b)
		return err
	})
	must.Do(t, err)
	return all
}

func TestExportIsWholeLog(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 255, 256, 257, 513, 66_000} {
		l, dir, server := filled(t, n)
		sources := []auditing.Source{source(t, server.URL, server.CA), source(t, server.Profile, ""), source(t, dir, "")}
		if n > 1000 {
			sources = sources[:1]
		}
		for _, src := range sources {
			to := t.TempDir()
			if sum := export(t, src, to, l.Key); sum.Checkpoint.Tree != l.Tree(t) || sum.HashOnly != 0 || sum.Before != 0 {
				t.Errorf("%d entries: %+v", n, sum)
			}
			want, got := files(t, dir), files(t, to)
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%d entries: %s differs", n, name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d entries: %d files, want %d", n, len(got), len(want))
			}
			if v := verified(t, to, l.Key); v.Checkpoint.Tree != l.Tree(t) || len(v.Faults) > 0 || v.HashOnly > 0 {
				t.Errorf("%d entries: %+v", n, v)
			}
		}
	}
}

func TestSecondExportFetchesOnlyNewFiles(t *testing.T) {
	t.Parallel()
	l, dir, server := filled(t, 66_000)
	src, to := source(t, server.URL, server.CA), t.TempDir()
	export(t, src, to, l.Key)
	l.Fill(t, 66_600, "later")
	l.Write(t, dir)
	server.Requests.Store(0)
	if sum := export(t, src, to, l.Key); sum.Before != 66_000 || sum.Checkpoint.N != 66_600 {
		t.Errorf("%+v", sum)
	}
	if n := server.Requests.Load(); n > 12 { // of 264 bundles 4 are new or longer
		t.Errorf("%d requests", n)
	}
	fresh := t.TempDir()
	export(t, src, fresh, l.Key)
	want, got := files(t, fresh), files(t, to)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs from a first export's", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, and a first export has %d", len(got), len(want))
	}
	server.Requests.Store(0)
	export(t, src, to, l.Key)
	if n := server.Requests.Load(); n > 5 {
		t.Errorf("%d requests although nothing is new", n)
	}
}

func TestInterruptedExportContinues(t *testing.T) {
	t.Parallel()
	l, _, server := filled(t, 20_000)
	src, to := source(t, server.URL, server.CA), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	_, err := auditing.Export(ctx, src, folder(t, to), l.Key, func(n int64) {
		if n > 10_000 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, name := range []string{"tile/entries/003", "tile/0/004"} { // as a crash may leave them
		must.Do(t, os.Truncate(filepath.Join(to, name), 100))
	}
	server.Requests.Store(0)
	export(t, src, to, l.Key)
	if n := server.Requests.Load(); n > 50 {
		t.Errorf("%d requests for the second half of 79 bundles", n)
	}
	if v := verified(t, to, l.Key); len(v.Faults) > 0 {
		t.Error(v.Faults)
	}
}

func TestExportRefusesOtherHistory(t *testing.T) {
	t.Parallel()
	l, dir, server := filled(t, 1000)
	src, to := source(t, server.URL, server.CA), t.TempDir()
	export(t, src, to, l.Key)
	before := files(t, to)
	f := func(want string, other *audittest.Log) {
		t.Helper()
		other.Write(t, dir)
		_, err := auditing.Export(t.Context(), src, folder(t, to), l.Key, func(int64) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		after := files(t, to)
		for name := range before {
			if after[name] != before[name] {
				t.Errorf("%s was changed", name)
			}
		}
	}
	f("rolled back", l.First(t, 999))
	fork := l.First(t, 998)
	fork.Fill(t, 1000, "fork")
	f("forked or rewritten", fork)
	fork.Fill(t, 3000, "fork")
	f("forked or rewritten", fork)
	f("not a valid checkpoint", audittest.New(t, 2))
}

// A server that has other entries than its checkpoint says is not believed.
func TestExportChecksEachEntry(t *testing.T) {
	t.Parallel()
	l, dir, server := filled(t, 700)
	f := func(want string, entry int) {
		t.Helper()
		kept := bytes.Clone(l.Entries()[entry])
		l.Entries()[entry][0] ^= 1
		l.Write(t, dir)
		to := t.TempDir()
		_, err := auditing.Export(t.Context(), source(t, server.URL, server.CA), folder(t, to), l.Key, func(int64) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := os.Stat(filepath.Join(to, "checkpoint")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder has a checkpoint: %v", err)
		}
		copy(l.Entries()[entry], kept)
	}
	f("the entries 256 to 511 that the log gives are not those of its checkpoint", 300)
	f("the entries 512 to 699 that the log gives are not those of its checkpoint", 699)
}

// expired returns the act by which the first n records of a log lose their contents.
func expired(n uint64) []byte {
	r := entry.New(entry.Act, time.Now())
	r.Operation, r.Count = entry.OperationExpire, n
	return r.Encode()
}

// Contents that are not there are a fault, unless the log says that their retention has passed.
func TestMissingContentsAreFound(t *testing.T) {
	t.Parallel()
	l, dir, server := filled(t, 2000)
	f := func(missing, want string, status int, more ...string) {
		t.Helper()
		to := t.TempDir()
		export(t, source(t, server.URL, server.CA), to, l.Key)
		must.Do(t, os.RemoveAll(filepath.Join(to, missing)))
		v := verified(t, to, l.Key)
		if got := strings.Join(v.Faults, "\n"); !strings.Contains(got, want) || (status == 0) != (got == "") {
			t.Errorf("without %s: got %q, want %q", missing, got, want)
		}
		python(t, status, "", to, l.Key, more...)
	}
	f("tile/entries/003", "tile/entries/003: it is missing", 1)
	f("tile/entries/007.p", "tile/entries/007.p/208: it is missing", 1)
	f("tile/entries", "tile/entries/007.p/208: it is missing", 1)
	l.Append(t, expired(3*256+1))
	l.Write(t, dir)
	f("tile/entries/003", "", 0, "--expired", "769")
	f("tile/entries/004", "tile/entries/004: it is missing", 1, "--expired", "769")
	f("tile/entries/007.p", "tile/entries/007.p/209: it is missing", 1, "--expired", "769") // with what it says
}

func TestEntriesPastRetentionAreCounted(t *testing.T) {
	t.Parallel()
	l, dir, server := filled(t, 2000)
	l.Append(t, expired(300))
	l.Write(t, dir)
	server.Gone = func(path string) bool { return path == "tile/entries/000" || path == "tile/entries/001" }
	for _, where := range []string{server.URL, server.Profile} {
		to := t.TempDir()
		if sum := export(t, source(t, where, server.CA), to, l.Key); sum.HashOnly != 512 {
			t.Errorf("%s: %+v", where, sum)
		}
		if v := verified(t, to, l.Key); v.HashOnly != 512 || len(v.Faults) > 0 {
			t.Errorf("%s: %+v", where, v)
		}
		python(t, 0, "512 are proven by hash only", to, l.Key, "--expired", "300")
		server.Requests.Store(0)
		export(t, source(t, where, server.CA), to, l.Key)
		if n := server.Requests.Load(); n > 3 { // the checkpoint and the tiles of its root
			t.Errorf("%s: a second export makes %d requests", where, n)
		}
	}
}

func TestFolderKeepsItsKey(t *testing.T) {
	t.Parallel()
	l, _, server := filled(t, 3)
	src, to, ctx := source(t, server.URL, server.CA), t.TempDir(), t.Context()
	if key, err := auditing.FindKey(ctx, "", src, folder(t, to)); err != nil || key != l.Key {
		t.Fatalf("%q, %v", key, err)
	}
	export(t, src, to, l.Key)
	other := audittest.New(t, 2)
	if _, err := auditing.FindKey(ctx, other.Key, src, folder(t, to)); err == nil {
		t.Error("the folder takes another key")
	}
}
