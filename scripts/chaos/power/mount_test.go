//go:build linux

package power_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/scripts/chaos/power"
)

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, text)
	}
}

// The drive has ext4 with two files, of which one is synced when the power fails.
func TestFileSystemKeepsSyncedFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root: run the tests as root")
	}
	dir := t.TempDir()
	served, mounted := filepath.Join(dir, "served"), filepath.Join(dir, "mounted")
	for _, path := range []string{served, mounted} {
		must.Do(t, os.Mkdir(path, 0o700))
	}
	d, err := power.Open(dir, 64<<20)
	must.Do(t, err)
	m, err := power.Mount(d, served)
	must.Do(t, err)
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	run(t, "mkfs.ext4", "-q", "-E", "nodiscard", m.Image)
	lost := 0
	for round := range uint64(6) {
		run(t, "mount", "-o", "loop", m.Image, mounted)
		synced, other := filepath.Join(mounted, "synced"), filepath.Join(mounted, "other")
		if round > 0 {
			if raw, err := os.ReadFile(synced); err != nil || string(raw) != "kept" {
				t.Errorf("round %d: the synced file holds %q, %v", round, raw, err)
			}
			if raw, err := os.ReadFile(other); err != nil || string(raw) != "lost?" {
				lost++
			}
		}
		save(t, synced, "kept", true)
		save(t, other, "lost?", false)
		d.Cut()
		d.Off()
		run(t, "umount", mounted)
		if _, err := d.On(rand.New(rand.NewPCG(round, 1))); err != nil {
			t.Fatal(err)
		}
	}
	if lost == 0 {
		t.Error("nothing was ever lost")
	}
	if d.Flushes() == 0 {
		t.Error("no flush came to the drive")
	}
}

// save replaces a file. If sync is set it syncs the file and its folder.
func save(t *testing.T, path, text string, sync bool) {
	t.Helper()
	_ = os.Remove(path) // it may not exist
	f, err := os.Create(path)
	must.Do(t, err)
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if !sync {
		return
	}
	must.Do(t, f.Sync())
	folder, err := os.Open(filepath.Dir(path))
	must.Do(t, err)
	defer folder.Close()
	must.Do(t, folder.Sync())
}
