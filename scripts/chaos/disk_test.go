package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"facet/internal/must"
)

// A program with a mount namespace of its own keeps a copy of each mount, which holds the drive.
func TestDiskGoesWhileItsMountIsCopied(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root: run the tests as root")
	}
	d, err := mount(filepath.Join(t.TempDir(), "disk"))
	must.Do(t, err)
	keeper := exec.Command("unshare", "--mount", "sh", "-c", "echo started; cat")
	in, err := keeper.StdinPipe()
	must.Do(t, err)
	out, err := keeper.StdoutPipe()
	must.Do(t, err)
	must.Do(t, keeper.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = keeper.Wait()
	}()
	if err := d.unmount(); err != nil {
		t.Error(err)
	}
}
