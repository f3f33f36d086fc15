package models

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/internal/must"
)

func packs(t *testing.T) string { return filepath.Dir(enginetest.PackDir(enginetest.Assets(t))) }

// copied returns a folder of packs with a copy of the default one.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(dir, "mine"), os.DirFS(enginetest.PackDir(enginetest.Assets(t)))))
	return dir
}

func TestListExplainsUnusablePacks(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "torn"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "torn", models.ManifestName), []byte("{"), 0o600))
	var out bytes.Buffer
	must.Do(t, List(&out, dir))
	pack := enginetest.Pack(t)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], pack.ID[:shortID]) || !strings.Contains(lines[1], pack.Manifest.ModelID().String()) ||
		!strings.HasPrefix(lines[2], "torn") || !strings.Contains(lines[2], "not valid") {
		t.Errorf("the list is\n%s", out.String())
	}
	if err := List(&out, t.TempDir()); err == nil || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("no packs: %v", err)
	}
}

// Info shows files, licences and calibration.
func TestInfoShowsTheManifest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must.Do(t, Info(&out, Find(packs(t), "default")))
	m := enginetest.Pack(t).Manifest
	wants := []string{m.Calibration.Data, m.Quality.Data, m.Note, "has score 7000"}
	for _, f := range m.Files {
		wants = append(wants, f.Name, f.SHA256, f.Licence, f.Source)
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if err := Info(&out, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "there is no model pack") {
		t.Errorf("a missing pack: %v", err)
	}
}

func TestPackIsNamedByItsFolderOrAPath(t *testing.T) {
	t.Parallel()
	f := func(name, want string) {
		t.Helper()
		if got := Find("packs", name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	f("default", filepath.Join("packs", "default"))
	f(filepath.Join(".", "x", "y"), filepath.Join("x", "y"))
	f("/a/b", "/a/b")
	f("..", "..")
}

func TestVerifyFindsADamagedPack(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	check := Check{
		ONNXRuntime: enginetest.Library(t),
		Photo:       filepath.Join(enginetest.Assets(t), "photos", "scikit-image", "astronaut.png"),
	}
	var out bytes.Buffer
	if err := check.Verify(t.Context(), &out, Find(dir, "mine")); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "1 face(s)") || strings.Count(out.String(), "intact") != len(enginetest.Pack(t).Manifest.Files) {
		t.Errorf("it says\n%s", out.String())
	}
	none := check
	none.Photo = filepath.Join(dir, "none.jpg")
	out.Reset()
	if err := none.Verify(t.Context(), &out, Find(dir, "mine")); err != nil || !strings.Contains(out.String(), "no sample photograph") {
		t.Errorf("without a photograph: %v\n%s", err, out.String())
	}
	none.Photo = filepath.Join(enginetest.Assets(t), "photos", "scikit-image", "chelsea.png")
	if err := none.Verify(t.Context(), &out, Find(dir, "mine")); !errors.Is(err, ErrDamaged) {
		t.Errorf("models that find no face: %v, want ErrDamaged", err)
	}
	name := filepath.Join(dir, "mine", enginetest.Pack(t).Manifest.Files[0].Name)
	data, err := os.ReadFile(name)
	must.Do(t, err)
	data[len(data)/2] ^= 1
	must.Do(t, os.WriteFile(name, data, 0o600))
	out.Reset()
	if err := check.Verify(t.Context(), &out, Find(dir, "mine")); !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), "has SHA-256") {
		t.Errorf("one bit flipped: %v\n%s", err, out.String())
	}
}
