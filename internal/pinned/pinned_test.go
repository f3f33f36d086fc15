package pinned

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
)

func TestHashesAreThoseOfSetup(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "assets", "lock.json"))
	must.Do(t, err)
	var lock struct {
		Packages []struct {
			Platform string
			Members  []struct{ To, SHA256 string }
		}
	}
	must.Do(t, json.Unmarshal(b, &lock))
	want := map[string]map[string]string{}
	for _, p := range lock.Packages {
		for _, m := range p.Members {
			if ok, _ := path.Match("lib/lib*", m.To); ok {
				if want[p.Platform] == nil {
					want[p.Platform] = map[string]string{}
				}
				want[p.Platform][path.Base(m.To)] = m.SHA256
			}
		}
	}
	if len(want) < 3 || !reflect.DeepEqual(pins, want) {
		t.Errorf("got %v, want %v", pins, want)
	}
}

func TestOpenRefusesOtherBytes(t *testing.T) {
	t.Parallel()
	const hashOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	name := filepath.Join(t.TempDir(), "lib.so")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("a")
	f, err := Open(name, hashOfA)
	must.Do(t, err)
	defer f.Close()
	must.Do(t, os.Remove(name))
	write("b") // another file of the name
	b, err := os.ReadFile(LoadName(f))
	if err != nil || string(b) != "a" && runtime.GOOS == "linux" {
		t.Errorf("the loader gets %q, %v", b, err)
	}
	_, err = Open(name, hashOfA)
	if changed, ok := errors.AsType[*ChangedError](err); !ok || changed.File != name || changed.Want != hashOfA || changed.Got == hashOfA {
		t.Errorf("got %v", err)
	}
}

// Opening a pipe would wait for a writer.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := Open(pipe, "")
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a pipe was opened")
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the pipe")
	}
	for _, name := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := Open(name, ""); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}
