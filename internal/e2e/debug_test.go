package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/internal/testkit"
)

const (
	debugCanary   = "canary7f"
	accessKeyForm = `FACET[A-Za-z0-9]{15}`
)

// keysOf adds the keys in the files of a cluster's folder.
func keysOf(t *testing.T, n testkit.Needles, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".key" {
			return nil //nolint:nilerr // the nodes remove files meanwhile
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Base(filepath.Dir(path)) + "/" + d.Name()
		if block, _ := pem.Decode(b); block != nil {
			n.AddEnds("the bytes of "+name, block.Bytes[36:]) // behind the head that all keys share
			n.AddEnds("the text of "+name, []byte(base64.StdEncoding.EncodeToString(block.Bytes)[48:]))
			return nil
		}
		digits, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
		n.AddEnds("the text of "+name, digits)
		if plain, err := hex.DecodeString(string(digits)); err == nil {
			n.AddEnds("the bytes of "+name, plain)
		}
		return nil
	})
	must.Do(t, err)
}

// photoOf adds a photo and its template.
func photoOf(t *testing.T, n testkit.Needles, name string) {
	t.Helper()
	faces, err := extractor(t).Extract(t.Context(), photo(t, name))
	if err != nil || len(faces) != 1 {
		t.Fatalf("%d faces, %v", len(faces), err)
	}
	n.AddPhoto(name, photo(t, name), faces[0].Template)
}

// enrolled uses the cluster as a tenant with telling names does, and returns what the bundle must
// not have of it.
func enrolled(t *testing.T, c *cluster) testkit.Needles {
	t.Helper()
	n := testkit.Needles{}
	named := func(what string) string {
		name := debugCanary + "-" + what
		n["the "+what] = []byte(name)
		return name
	}
	tenant := tenantOf(t, c, named("tenant"))
	k := c.keyless(t).with(tenant)
	k.gallery(t, map[string]any{"name": named("gallery"), "description": named("description"), "faceMinimumQualityScore": 0.45, "size": 100})
	k.post(t, 0, "/v1.1/tags/"+named("tag"), nil).Want(t, http.StatusOK, nil)
	var r registered
	k.post(t, 0, "/v1.1/subjects", map[string]any{
		"face": encoded(t, obama), "tags": []string{debugCanary + "-tag"}, "externalId": named("external-id"), "userData": map[string]any{"note": named("user-data")},
	}).Want(t, http.StatusCreated, &r)
	k.post(t, 1, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).Want(t, http.StatusOK, nil)
	k.post(t, 2, "/v1.1/subjects", map[string]any{"face": encoded(t, rocket), "externalId": named("refused-id")}).WantRefused(t, "NoFace", 2001)
	out, err := facet("key", "create", "--tenant", debugCanary+"-tenant", "--role", "biometric", "--json", "--dir", c.dir)
	second := regexp.MustCompile(accessKeyForm).FindString(out)
	if err != nil || second == "" {
		t.Fatalf("%v: %s", err, out)
	}
	for what, text := range map[string]string{
		"secret key": tenant.SecretKey, "access key": tenant.AccessKey, "second access key": second, "API key": k.APIKey, "subject": r.ID, "event": r.EventID,
	} {
		n["the "+what] = []byte(text)
	}
	keysOf(t, n, filepath.Join(c.dir, "certificates"))
	photoOf(t, n, obama)
	return n
}

// The test enrols a person with telling names, and looks for each of them, each key, the photo and
// the template in the bundle. It finds all of them in an archive in which it has put them.
func TestDebugBundleHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	c := shared(t)
	n := enrolled(t, c)
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, err := facet("debug", "--dir", c.dir, "--out", name)
	if err != nil || strings.Contains(out, "left out") {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	bundle := read(t, name)
	if found := n.In(bundle); len(found) > 0 {
		t.Errorf("the bundle has %v", found)
	}
	if out, err := facet("debug", "--dir", c.dir, "--out", name); err == nil || !strings.Contains(out, "exists") {
		t.Errorf("a bundle was overwritten: %v: %s", err, out)
	}
	files := unpacked(t, bundle)
	listed(t, files)
	logs := 0
	for _, node := range c.info.Nodes {
		folder := "facet-debug/nodes/" + strings.ReplaceAll(node.Admin, ":", "-") + "/"
		for file, want := range map[string]string{
			"metrics.txt": "facet_group_leader{", "log.txt": `msg="`, "settings.json": `"peer-address"`, "goroutine.txt": "goroutine profile: total", "ready.json": "OK",
			"heap.pprof": "\x1f\x8b", "cpu.pprof": "\x1f\x8b", "mutex.pprof": "\x1f\x8b", "block.pprof": "\x1f\x8b",
		} {
			if !bytes.Contains(files[folder+file], []byte(want)) {
				t.Errorf("%s has no %q: %.200q", folder+file, want, files[folder+file])
			}
		}
		written := read(t, node.Dir+".log")
		for _, what := range n.In(written) {
			if !strings.HasSuffix(what, "access key") { // the bundle leaves those out
				t.Errorf("the log of %s has %s", node.Dir, what)
			}
		}
		logs += bytes.Count(files[folder+"log.txt"], []byte("access key made"))
	}
	if logs == 0 {
		t.Error("no log has the line of the new access key, so nothing was to be left out")
	}
	if err := n.Check(); err != nil || len(n) < 25 {
		t.Errorf("%d needles: %v", len(n), err)
	}
}

// unpacked returns the files of an archive.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	must.Do(t, err)
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err == nil {
			files[head.Name], err = io.ReadAll(r)
		}
		must.Do(t, err)
	}
}

// listed checks that the manifest lists each other file, and no more.
func listed(t *testing.T, files map[string][]byte) {
	t.Helper()
	var manifest struct {
		Files []struct{ Name, What, SHA256 string }
	}
	must.Do(t, json.Unmarshal(files["facet-debug/manifest.json"], &manifest))
	if len(manifest.Files) != len(files)-1 {
		t.Errorf("the manifest lists %d of %d files", len(manifest.Files), len(files)-1)
	}
	for _, f := range manifest.Files {
		sum := sha256.Sum256(files["facet-debug/"+f.Name])
		if hex.EncodeToString(sum[:]) != f.SHA256 || f.What == "" {
			t.Errorf("the manifest is wrong about %+v", f)
		}
	}
}
