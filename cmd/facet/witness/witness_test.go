package witness_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/auditing/audittest"
	"facet/cmd/facet/witness"
	"facet/internal/must"
	"facet/internal/tiles"
)

// served is a log that a server has, and the witness that follows it.
type served struct {
	*audittest.Log
	dir    string
	server *audittest.Server
}

func serve(t *testing.T, tenant byte) *served {
	t.Helper()
	s := &served{audittest.New(t, tenant), t.TempDir(), nil}
	s.server = audittest.Serve(t, s.dir)
	return s
}

func (s *served) source(t *testing.T) auditing.Source {
	t.Helper()
	src, err := auditing.OpenSource(t.Context(), s.server.URL, s.server.CA)
	must.Do(t, err)
	return src
}

// grow makes the log longer.
func (s *served) grow(t *testing.T, n int) {
	t.Helper()
	s.Fill(t, n, "entry")
	s.Write(t, s.dir)
}

func open(t *testing.T, state string, logs ...*served) (*witness.Witness, witness.Config) {
	t.Helper()
	key, err := witness.OpenKey(filepath.Join(t.TempDir(), "w", "witness.key"), "example.com/w1")
	must.Do(t, err)
	cfg := witness.Config{State: state, Key: key, Interval: 10 * time.Millisecond, Out: slog.New(slog.DiscardHandler)}
	for _, l := range logs {
		cfg.Logs = append(cfg.Logs, witness.Log{Key: l.Key, From: l.source(t)})
	}
	w, err := witness.Open(cfg)
	must.Do(t, err)
	t.Cleanup(func() { w.Close() })
	return w, cfg
}

// seen checks that a witness has cosigned the tree of l, and returns the file's text.
func seen(t *testing.T, cfg witness.Config, l *audittest.Log) string {
	t.Helper()
	w, err := auditing.ReadWitnessed(cfg.State, l.Key, cfg.Key.Public)
	if err != nil || w.Tree != l.Tree(t) || time.Since(w.At) > time.Minute || w.Witness != "example.com/w1" {
		t.Errorf("got %+v, %v, want %v", w, err, l.Tree(t))
	}
	b, err := os.ReadFile(filepath.Join(cfg.State, auditing.WitnessedPath(l.Origin)))
	must.Do(t, err)
	return string(b)
}

func stat(t *testing.T, cfg witness.Config, l *audittest.Log) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(cfg.State, auditing.WitnessedPath(l.Origin)))
	must.Do(t, err)
	return info
}

func TestWitnessCosignsWhatContinues(t *testing.T) {
	t.Parallel()
	l := serve(t, 1)
	w, cfg := open(t, t.TempDir(), l)
	for _, n := range []int{0, 1, 256, 300, 70_000} {
		l.grow(t, n)
		if err := w.Once(t.Context()); err != nil {
			t.Fatalf("%d entries: %v", n, err)
		}
		seen(t, cfg, l.Log)
		before := stat(t, cfg, l.Log)
		if err := w.Once(t.Context()); err != nil || !os.SameFile(before, stat(t, cfg, l.Log)) {
			t.Errorf("%d entries are cosigned twice: %v", n, err)
		}
	}
	for _, name := range []string{"key", auditing.WitnessedPath(l.Origin)} {
		if info, err := os.Stat(filepath.Join(cfg.State, name)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: a web server can't read it: %v, %v", name, info, err)
		}
	}
}

func TestWitnessRefusesOtherHistory(t *testing.T) {
	t.Parallel()
	f := func(want string, other func(l *audittest.Log) *audittest.Log) {
		t.Helper()
		l := serve(t, 1)
		l.grow(t, 1000)
		w, cfg := open(t, t.TempDir(), l)
		must.Do(t, w.Once(t.Context()))
		text, changed := seen(t, cfg, l.Log), other(l.Log)
		changed.Write(t, l.dir)
		for range 2 {
			if err := w.Once(t.Context()); !errors.Is(err, witness.ErrAlarm) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if seen(t, cfg, l.Log) != text {
			t.Error("the cosigned checkpoint has changed")
		}
		name := filepath.Join(cfg.State, filepath.Dir(auditing.WitnessedPath(l.Origin)), "refused")
		if refused, err := os.ReadFile(name); err != nil || string(refused) != string(changed.Signed(t)) {
			t.Errorf("the refused checkpoint is kept as %q, %v", refused, err)
		}
		l.grow(t, 1001)
		if err := w.Once(t.Context()); err != nil {
			t.Errorf("the true log is back: %v", err)
		}
		seen(t, cfg, l.Log)
	}
	f("rolled back: it shows 999 entries, and 1000 were cosigned", func(l *audittest.Log) *audittest.Log { return l.First(t, 999) })
	f("forked: its 1000 entries", func(l *audittest.Log) *audittest.Log { return fork(t, l, 999, 1000) })
	f("its first entries are others now", func(l *audittest.Log) *audittest.Log { return fork(t, l, 999, 1001) })
	f("its first entries are others now", func(l *audittest.Log) *audittest.Log { return fork(t, l, 0, 70_000) })
}

func fork(t *testing.T, l *audittest.Log, same, n int) *audittest.Log {
	t.Helper()
	other := l.First(t, same)
	other.Fill(t, n, "fork")
	return other
}

// What can't be checked is not cosigned, and is no alarm.
func TestUncheckedLogIsNotCosigned(t *testing.T) {
	t.Parallel()
	l := serve(t, 1)
	l.grow(t, 1000)
	w, cfg := open(t, t.TempDir(), l)
	must.Do(t, w.Once(t.Context()))
	text, before := seen(t, cfg, l.Log), l.First(t, 1000)
	l.grow(t, 2000)
	f := func(tamper func()) {
		t.Helper()
		tamper()
		if err := w.Once(t.Context()); err == nil || errors.Is(err, witness.ErrAlarm) {
			t.Errorf("%v", err)
		}
		if seen(t, cfg, before) != text {
			t.Error("the cosigned checkpoint has changed")
		}
		l.Write(t, l.dir)
	}
	f(func() { remove(t, filepath.Join(l.dir, "tile", "0", "003")) })
	f(func() { write(t, filepath.Join(l.dir, "tile", "0", "003"), make([]byte, tiles.Width*32)) })
	f(func() { write(t, filepath.Join(l.dir, "tile", "1", "000.p", "7"), make([]byte, 7*32)) })
	f(func() { write(t, filepath.Join(l.dir, "checkpoint"), []byte("nothing")) })
	f(func() { write(t, filepath.Join(l.dir, "checkpoint"), audittest.New(t, 2).Signed(t)) })
	must.Do(t, w.Once(t.Context()))
	seen(t, cfg, l.Log)
}

func remove(t *testing.T, name string) {
	t.Helper()
	must.Do(t, os.Remove(name))
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(name, b, 0o600))
}

func TestDamagedStateIsNotReplaced(t *testing.T) {
	t.Parallel()
	l := serve(t, 1)
	l.grow(t, 100)
	w, cfg := open(t, t.TempDir(), l)
	must.Do(t, w.Once(t.Context()))
	name := filepath.Join(cfg.State, auditing.WitnessedPath(l.Origin))
	write(t, name, []byte("damaged"))
	if err := w.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "own checkpoint can't be read") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "damaged" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "witness.key")
	if _, err := witness.OpenKey(name, ""); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("without a name: %v", err)
	}
	made, err := witness.OpenKey(name, "example.com/w1")
	must.Do(t, err)
	if again, err := witness.OpenKey(name, ""); err != nil || again.Public != made.Public {
		t.Errorf("%q, %v, want %q", again.Public, err, made.Public)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	other, err := witness.OpenKey(filepath.Join(t.TempDir(), "k"), "example.com/w1")
	must.Do(t, err)
	b, err := os.ReadFile(name)
	must.Do(t, err)
	secret, _, _ := strings.Cut(string(b), "\n")
	for _, text := range []string{"", "x", secret + "\n", secret + "\n" + other.Public + "\n", "x\n" + made.Public + "\n"} {
		write(t, name, []byte(text))
		if _, err := witness.OpenKey(name, "example.com/w1"); err == nil {
			t.Errorf("%q is taken for a key", text)
		}
	}
}
