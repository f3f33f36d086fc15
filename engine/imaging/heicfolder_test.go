package imaging_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"facet/engine/imaging"
	"facet/internal/must"
)

// warmVariable makes a test's process one that has a folder for the HEIC decoder and waits for its
// end. It doesn't compile the decoder.
const warmVariable = "FACET_TEST_WARMS"

func warmAndWait() {
	if err := imaging.NewFolder(); err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "warm")
	select {}
}

// warmProcess starts one and returns what kills it.
func warmProcess(t *testing.T) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), warmVariable+"=1")
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "warm\n" {
		t.Fatalf("the process says %q, error %v", line, err)
	}
	return kill
}

func folders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "facet-heic-*"))
	must.Do(t, err)
	return found
}

func TestFoldersOfDeadProcessesAreRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs locks of folders, which Windows lacks: facet is built for Linux and macOS")
	}
	warm := imaging.Cool()
	defer warm()
	t.Setenv("TMPDIR", t.TempDir())
	warmProcess(t)
	alive := folders(t)
	kill := warmProcess(t)
	if n := len(folders(t)); n != 2 || len(alive) != 1 {
		t.Fatalf("two processes have %d folders, the first %d", n, len(alive))
	}
	kill()
	others := t.TempDir() // what a link of the same name leads to stays
	must.Do(t, os.Symlink(others, filepath.Join(os.TempDir(), "facet-heic-decoder-link")))
	cool, err := imaging.Warm(t.Context())
	must.Do(t, err)
	now := folders(t)
	if len(now) != 3 || !slices.Contains(now, alive[0]) { // with the link and this process's
		t.Errorf("%v are left, want the living process's %v, a new one and the link", now, alive)
	}
	if _, err := os.Stat(others); err != nil {
		t.Error(err)
	}
	if err := cool(); err != nil || len(folders(t)) != 2 {
		t.Errorf("%v are left, error %v", folders(t), err)
	}
}
