package keys

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
	"facet/shard/seal"
)

// shell is a command of a test. A node runs no shell by itself.
func shell(text string) Source { return Source{Command: []string{"/bin/sh", "-c", text}} }

func TestCommandPrintsKeys(t *testing.T) {
	t.Parallel()
	r, err := openRing(t.Context(), shell("echo "+hexOf("01")+"; echo "+hexOf("02")+"; echo not part of it >&2"))
	must.Do(t, err)
	if got := r.secrets(); len(got) != 2 || got[0][0] != 1 || got[1][0] != 2 {
		t.Errorf("got %x", got)
	}
	if r.newest().secret[0] != 2 {
		t.Error("the last line is not the newest key")
	}
	if got := r.infos()[0].From; got != fromCommand {
		t.Errorf("it comes from %q", got)
	}
}

func TestFailedCommandShowsItsComplaint(t *testing.T) {
	t.Parallel()
	f := func(from Source, want ...string) {
		t.Helper()
		_, err := openRing(t.Context(), from)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: got %v, want %q", from.Command, err, w)
			}
		}
		if err != nil && (strings.Contains(err.Error(), hexOf("01")) || len(err.Error()) > 2*complaintMax) {
			t.Errorf("%q: the error shows the key, or too much: %v", from.Command, err)
		}
	}
	f(shell("echo "+hexOf("01")+"; echo the vault is sealed >&2; exit 3"), "/bin/sh", "exit status 3", "the vault is sealed")
	f(shell("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1"), "exit status 1")
	f(shell("head -c 100000 /dev/zero"), "printed more than 1280 bytes")
	f(shell("echo "+hexOf("01")+"x"), "what sh printed: it must hold lines of 64 hexadecimal digits")
	f(Source{Command: []string{"/nowhere/unseal"}}, "/nowhere/unseal")
	f(Source{Command: []string{"/bin/echo", "; echo " + hexOf("01")}}, "must hold lines") // no shell reads it
}

// The command has started a child that would hold its output open.
func TestSlowCommandEndsWithItsChildren(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // ends before the test: openRing waits for it
		for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
			if b, err := os.ReadFile(file); err == nil && bytes.HasSuffix(b, []byte("\n")) {
				break
			}
		}
		cancel(errors.New("the time is over"))
	}()
	began := time.Now()
	_, err := openRing(ctx, shell("sleep 600 & echo $! > "+file+"; wait"))
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "the time is over") || took > 5*time.Minute {
		t.Errorf("got %v after %v", err, took)
	}
	b, err := os.ReadFile(file)
	must.Do(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	must.Do(t, err)
	for late := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if state, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); bytes.Contains(state, []byte(") Z ")) {
			break // ended, and nobody has asked for its exit code
		}
		if time.Now().After(late) {
			t.Fatal("its child still runs")
		}
	}
}

func TestSourceKnowsCredentials(t *testing.T) {
	t.Parallel()
	f := func(want, file, credentials string, command ...string) {
		t.Helper()
		if got := SourceOf(file, credentials, command).place(); got != want {
			t.Errorf("%s in %q: %q, want %q", file, credentials, got, want)
		}
	}
	f("", "/keys/cluster.key", "")
	f("", "/keys/cluster.key", "/run/credentials/facet.service")
	f(fromCredential, "/run/credentials/facet.service/cluster.key", "/run/credentials/facet.service")
	f(fromCommand, "", "/run/credentials/facet.service", "/bin/unseal")
}

// The operator has added the new key to the source, and a rotation makes it the only one.
func TestCredentialIsNeverRewritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "some.key")
	text := hexOf("01") + " 2026-01-02T03:04:05Z\n" + hexOf("02") + "\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o400))
	r, err := openRing(t.Context(), SourceOf(file, dir, nil))
	must.Do(t, err)
	var applied string
	r.apply = func(secrets [][]byte) error {
		applied = ""
		for _, s := range secrets {
			applied += strconv.Itoa(int(s[0]))
		}
		return nil
	}
	next := r.newest()
	if next.secret[0] != 2 {
		t.Fatalf("the newest key is %x", next.secret)
	}
	for _, s := range []struct {
		step ringStep
		want string
	}{{ringAdd, "12"}, {ringUse, "21"}, {ringRetire, "2"}} {
		o := ringOrder{Step: s.step, Key: next.id(), Since: next.since}
		if s.step == ringAdd {
			o.Secret = next.secret
		}
		if _, err := r.step(o); err != nil || applied != s.want {
			t.Errorf("%s: keys %s, want %s; %v", s.step, applied, s.want, err)
		}
	}
	other := ringKey{secret: bytes.Repeat([]byte{3}, seal.KeyBytes)}
	_, err = r.step(ringOrder{Step: ringAdd, Key: other.id(), Secret: other.secret})
	if !errors.Is(err, errFixed) || len(r.secrets()) != 1 || !strings.Contains(err.Error(), fromCredential) {
		t.Errorf("a key that the credential lacks: %v", err)
	}
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	b, err := os.ReadFile(file)
	if err != nil || string(b) != text || len(entries) != 1 || !slices.Equal(r.secrets()[0], next.secret) {
		t.Errorf("the file has %q, %v", b, err)
	}
}
