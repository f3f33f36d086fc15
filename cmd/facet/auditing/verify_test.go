package auditing_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/auditing/audittest"
	"facet/internal/must"
	"facet/internal/tiles"
)

// python runs the independent verifier and checks its exit status and a part of its output.
func python(t testing.TB, status int, want, dir, key string, more ...string) {
	t.Helper()
	interpreter, err := filepath.Abs(filepath.Join("..", "..", "..", "assets", "venv", "bin", "python"))
	must.Do(t, err)
	if _, err := os.Stat(interpreter); err != nil {
		t.Fatalf("another verifier runs beside facet in this test, and is not set up: run make venv (%v)", err)
	}
	cmd := exec.Command(interpreter, append([]string{filepath.Join("..", "..", "..", "scripts", "audit", "verify.py"), dir, "--key", key}, more...)...)
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	got := 0
	if failed {
		got = exit.ExitCode()
	}
	if got != status || !strings.Contains(string(out), want) || strings.Contains(string(out), "Traceback") {
		t.Errorf("verify.py %s ends with %d, want %d and %q in\n%s", dir, got, status, want, out)
	}
}

// faulty checks that both verifiers find a fault, and that facet names it.
func faulty(t *testing.T, want, dir, key string) {
	t.Helper()
	v := verified(t, dir, key)
	if !slices.ContainsFunc(v.Faults, func(f string) bool { return strings.Contains(f, want) }) {
		t.Errorf("got the faults %q, want %q", v.Faults, want)
	}
	python(t, 1, "NOT VALID", dir, key)
}

func TestVerifiersAgreeOnValidLogs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 255, 256, 257, 1000, 65_536} {
		l, dir, _ := filled(t, n)
		if v := verified(t, dir, l.Key); len(v.Faults) > 0 || v.Checkpoint.Tree != l.Tree(t) {
			t.Errorf("%d entries: %+v", n, v)
		}
		python(t, 0, l.Tree(t).Hash.String(), dir, l.Key)
	}
}

// Each file of a log is changed at its beginning, its end, and places between.
func TestChangedByteIsFound(t *testing.T) {
	t.Parallel()
	l, dir, _ := filled(t, 600)
	all := files(t, dir)
	delete(all, "key")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := []byte(all[name])
		step := max(1, len(b)/20)
		if name == tiles.CheckpointPath {
			step = 1
		}
		for at := 0; at < len(b); at += step {
			changed := bytes.Clone(b)
			changed[at] ^= 1
			put(t, dir, name, changed)
			if v := verified(t, dir, l.Key); len(v.Faults) == 0 {
				t.Errorf("byte %d of %s: not found", at, name)
			}
			within := name == tiles.CheckpointPath && (at == len(b)-3 || at == len(b)-20) // the signature
			if at == 0 || at+step >= len(b) || at/step == 10 || within {
				python(t, 1, "NOT VALID", dir, l.Key)
			}
		}
		for _, changed := range [][]byte{append(bytes.Clone(b), 0), b[:len(b)-1], {}} {
			put(t, dir, name, changed)
			if v := verified(t, dir, l.Key); len(v.Faults) == 0 {
				t.Errorf("%s with %d bytes for %d: not found", name, len(changed), len(b))
			}
			python(t, 1, "NOT VALID", dir, l.Key)
		}
		put(t, dir, name, b)
	}
	python(t, 0, "VALID", dir, l.Key)
}

func put(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
}

func TestFaultsNameEntryOrFile(t *testing.T) {
	t.Parallel()
	f := func(want string, n int, tamper func(l *audittest.Log, dir string)) {
		t.Helper()
		l, dir, _ := filled(t, n)
		tamper(l, dir)
		faulty(t, want, dir, l.Key)
	}
	rewrite := func(change func(e [][]byte)) func(l *audittest.Log, dir string) {
		return func(l *audittest.Log, dir string) { change(l.Entries()); l.Write(t, dir) }
	}
	f("entry 300: tile/0/001.p/144 has another hash of it", 400, rewrite(func(e [][]byte) { e[300][1] ^= 1 }))
	f("entry 17: tile/0/000 has another hash of it", 400, rewrite(func(e [][]byte) { e[17], e[18] = e[18], e[17] }))
	f("tile/entries/000: no bundle of entries: it ends after 255 entries of 256", 400, func(l *audittest.Log, dir string) {
		var b []byte
		for _, e := range slices.Delete(slices.Clone(l.Entries()[:256]), 5, 6) {
			b, _ = tiles.AppendEntry(b, e)
		}
		put(t, dir, "tile/entries/000", b)
	})
	f("tile/0/000", 400, func(_ *audittest.Log, dir string) {
		must.Do(t, os.Remove(filepath.Join(dir, "tile/0/000")))
	})
	f("tile/1/000.p/2: its hash 1 is not that of tile/0/001", 600, func(_ *audittest.Log, dir string) { // two bundles in the other order, with their hashes
		for _, level := range []string{"0", "entries"} {
			a, b := filepath.Join(dir, "tile", level, "000"), filepath.Join(dir, "tile", level, "001")
			for _, move := range [][2]string{{a, a + ".x"}, {b, a}, {a + ".x", b}} {
				must.Do(t, os.Rename(move[0], move[1]))
			}
		}
	})
	f("checkpoint: the tiles of its 600 entries give another root hash", 600, func(l *audittest.Log, dir string) { // entry and all tiles anew, the old checkpoint
		other, signed := l.First(t, 590), l.Signed(t)
		other.Fill(t, 600, "other")
		other.Write(t, dir)
		put(t, dir, tiles.CheckpointPath, signed)
	})
	f("checkpoint: not a valid checkpoint", 600, func(_ *audittest.Log, dir string) { // a log of another key
		other := audittest.New(t, 2)
		other.Fill(t, 600, "other")
		other.Write(t, dir)
	})
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	l, dir, _ := filled(t, 2000)
	for _, e := range l.Entries() {
		e[0] ^= 1
	}
	l.Write(t, dir)
	if v := verified(t, dir, l.Key); len(v.Faults) != 100 || v.Further != 1900 {
		t.Errorf("%d faults and %d further ones", len(v.Faults), v.Further)
	}
	python(t, 1, "and perhaps more", dir, l.Key)
}

// cosign writes a checkpoint that a witness has cosigned, as that has it in its folder.
func cosign(t testing.TB, l *audittest.Log, dir string) (witnessKey string) {
	t.Helper()
	secret, plain, err := note.GenerateKey(rand.Reader, "example.com/witness")
	must.Do(t, err)
	witnessKey, err = cosignature.VKeyToCosignatureV1(plain)
	must.Do(t, err)
	signer, err := cosignature.NewSignerForCosignatureV1(secret)
	must.Do(t, err)
	_, n, err := tiles.Open(l.Signed(t), l.Key)
	must.Do(t, err)
	text, err := note.Sign(n, signer)
	must.Do(t, err)
	name := auditing.WitnessedPath(l.Origin)
	must.Do(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
	put(t, dir, name, text)
	return witnessKey
}

func TestWitnessShowsCutsAndForks(t *testing.T) {
	t.Parallel()
	f := func(want string, seen, now *audittest.Log) {
		t.Helper()
		dir, witness := t.TempDir(), t.TempDir()
		now.Write(t, dir)
		key := cosign(t, seen, witness)
		w, err := auditing.ReadWitnessed(witness, seen.Key, key)
		must.Do(t, err)
		v := verified(t, dir, now.Key, w)
		if want == "" && len(v.Faults) > 0 || want != "" && (len(v.Faults) != 1 || !strings.Contains(v.Faults[0], want)) {
			t.Errorf("got the faults %q, want %q", v.Faults, want)
		}
		status, text := 0, "VALID"
		if want != "" {
			status, text = 1, want
		}
		python(t, status, text, dir, now.Key, "--witness", witness, "--witness-key", key)
	}
	l := audittest.New(t, 1)
	l.Fill(t, 1000, "entry")
	f("", l.First(t, 0), l)
	f("", l.First(t, 300), l)
	f("", l.First(t, 512), l)
	f("", l, l)
	f("the end ", l, l.First(t, 999)) // "was cut" in both
	f("forked or rewritten", forked(t, l, 290, 300), l)
	f("forked or rewritten", forked(t, l, 999, 1000), l)
	f("forked or rewritten", forked(t, l, 0, 256), l)
}

// forked returns a log with the first entries of l, and others up to n.
func forked(t testing.TB, l *audittest.Log, same, n int) *audittest.Log {
	t.Helper()
	other := l.First(t, same)
	other.Fill(t, n, "fork")
	return other
}

func TestForeignCosignaturesAreRefused(t *testing.T) {
	t.Parallel()
	l, dir, _ := filled(t, 10)
	witness := t.TempDir()
	key, other := cosign(t, l, witness), cosign(t, l, t.TempDir())
	if _, err := auditing.ReadWitnessed(witness, l.Key, other); !errors.Is(err, tiles.ErrCheckpoint) {
		t.Errorf("another witness's key: %v", err)
	}
	python(t, 1, "has not signed it", dir, l.Key, "--witness", witness, "--witness-key", other)
	if _, err := auditing.ReadWitnessed(filepath.Join(dir, tiles.CheckpointPath), l.Key, key); !errors.Is(err, tiles.ErrCheckpoint) {
		t.Errorf("a checkpoint without cosignature: %v", err)
	}
	python(t, 1, "has not signed it", dir, l.Key, "--witness", filepath.Join(dir, tiles.CheckpointPath), "--witness-key", key)
	secret := "PRIVATE+KEY+example.com/w1+00000000+AQ" // somebody takes the wrong file, and the terminal must not show it
	if _, err := auditing.ReadWitnessed(witness, l.Key, secret); err == nil || !strings.Contains(err.Error(), "the file key") || strings.Contains(err.Error(), secret) {
		t.Errorf("a secret key: %v", err)
	}
	python(t, 1, "the key 'PRIVATE'+… can't be read", dir, l.Key, "--witness", witness, "--witness-key", secret)
	name := auditing.WitnessedPath(l.Origin)
	b, err := os.ReadFile(filepath.Join(witness, name))
	must.Do(t, err)
	for bit := range 8 * len(b) {
		changed := bytes.Clone(b)
		changed[bit/8] ^= 1 << (bit % 8)
		if _, err := auditing.OpenWitnessed(changed, l.Key, key); !errors.Is(err, tiles.ErrCheckpoint) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
	changed := bytes.Clone(b)
	changed[len(b)-20] ^= 1 // within the cosignature
	put(t, witness, name, changed)
	python(t, 1, "NOT VALID", dir, l.Key, "--witness", witness, "--witness-key", key)
}
