package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// importFiles is how many photos are imported while a node dies. The import takes
// some seconds.
const importFiles = 120

// bucketDir returns the folder of the tenant's files, from dev.json.
func (c *cluster) bucketDir(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	var i struct {
		BucketDir string `json:"bucket_dir"`
	}
	if err := json.Unmarshal(b, &i); err != nil {
		t.Fatal(err)
	}
	return i.BucketDir
}

// filesIn counts the files of a folder and those below it.
func filesIn(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each photo is registered exactly once.
func TestImportSurvivesAKilledNode(t *testing.T) {
	c := own(t)
	k := c.client(t, 2*importFiles)
	folder := t.TempDir()
	for i := range importFiles {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)+".jpg"), photo(t, obama), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type ended struct {
		out string
		err error
	}
	done := make(chan ended, 1)
	go func() {
		out, err := facet("import", "--dir", c.dir, "--api-key", k.apiKey, folder)
		done <- ended{out, err}
	}()
	victim := c.leader(t, 1)
	witness := (victim + 1) % len(c.info.Nodes)
	for end := time.Now().Add(time.Minute); len(k.active(t, witness)) < importFiles/10; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the import does not begin")
		}
	}
	if err := syscall.Kill(c.info.Nodes[victim].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	before := len(k.active(t, witness))
	got := <-done
	if want := strconv.Itoa(importFiles) + " registered, 0 failed"; got.err != nil || !strings.Contains(got.out, want) {
		t.Errorf("import: %v\n%s", got.err, got.out)
	}
	if n := len(k.active(t, witness)); n != importFiles || before == importFiles {
		t.Errorf("%d subjects after %d photos; at the kill there were %d", n, importFiles, before)
	}
	if n := filesIn(t, c.bucketDir(t)); n != 0 {
		t.Errorf("%d copies are left in the object store", n)
	}
}

func TestImportReportsFailedPhotos(t *testing.T) {
	c := own(t)
	k := c.client(t, 10)
	folder := t.TempDir()
	for name, what := range map[string]string{"one.jpg": obama, "rocket.jpg": rocket, "many.JPG": threePeople} {
		if err := os.WriteFile(filepath.Join(folder, name), photo(t, what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("no photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := facet("import", "--dir", c.dir, "--api-key", k.apiKey, folder)
	for _, want := range []string{"rocket.jpg: NoFace: ", "many.JPG: MultipleFaces: ", "3 photos: 1 registered, 2 failed"} {
		if !strings.Contains(out, want) {
			t.Errorf("import says nothing like %q:\n%s", want, out)
		}
	}
	if err == nil {
		t.Error("the exit code tells nothing of the failures")
	}
	if out, err := facet("import", "--dir", c.dir, "--api-key", k.apiKey, t.TempDir()); err == nil || !strings.Contains(out, "no photo") {
		t.Errorf("an empty folder: %v, %s", err, out)
	}
}
