package bucket

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/router/jobs"
)

var (
	tenantA = id.Tenant{UUID: id.UUID{0xa}}
	tenantB = id.Tenant{UUID: id.UUID{0xb}}
)

func put(t testing.TB, dir string, tenant id.Tenant, name, text string) string {
	t.Helper()
	full := filepath.Join(dir, tenant.String(), filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(full), 0o700))
	must.Do(t, os.WriteFile(full, []byte(text), 0o600))
	return full
}

func TestOnlyTheTenantsFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, tenantA, "a/ä b.jpg", "ann")
	secret := put(t, dir, tenantB, "secret.jpg", "bob")
	must.Do(t, os.Symlink(secret, filepath.Join(dir, tenantA.String(), "link")))
	must.Do(t, os.Symlink("a/ä b.jpg", filepath.Join(dir, tenantA.String(), "inside")))
	s, err := Open("file://" + dir)
	must.Do(t, err)
	f := func(name, want string, missing bool) {
		t.Helper()
		got, err := s.Read(t.Context(), tenantA, name, 100)
		if string(got) != want || (err == nil) != (want != "") || missing && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	f("a/ä b.jpg", "ann", false)
	f("inside", "ann", false)
	f("link", "", false)
	f("a", "", true)
	f("none", "", true)
	f("a/ä b.jpg/x", "", false)
	for _, name := range []string{"", ".", "..", "/", "../" + tenantB.String() + "/secret.jpg", "a/../../x", "a//b", "/a", "a/", "./a", secret, `a\b`, "a\x00"} {
		f(name, "", true)
	}
	if _, err := s.Read(t.Context(), id.Tenant{UUID: id.UUID{0xc}}, "x", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tenant without a folder: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestFileIsReadUpToItsBound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Repeat("0123456789", 30_000)
	put(t, dir, tenantA, "x", text)
	s, err := Open("file://" + dir)
	must.Do(t, err)
	if got, err := s.Read(t.Context(), tenantA, "x", len(text)); err != nil || !bytes.Equal(got, []byte(text)) {
		t.Errorf("as large as permitted: %d bytes, %v", len(got), err)
	}
	if _, err := s.Read(t.Context(), tenantA, "x", len(text)-1); !errors.Is(err, jobs.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

// The error does not repeat the secret in the address.
func TestBadAddressHidesItsSecret(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "photos", "file://host/x", "file:x", "ftp://secret@host/x", "s3://%zz?secret", "file://"} {
		if _, err := Open(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAddressIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"s3://copies/a b?region=x&secret=y#secret": "s3://copies/a%20b",
		"gs://user:secret@copies":                  "gs://copies",
		"file:///var/copies":                       "file:///var/copies",
		"s3://%zz?secret":                          "",
	} {
		if got := WithoutSecrets(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func FuzzNameNeverLeadsOutside(f *testing.F) {
	dir := f.TempDir()
	put(f, dir, tenantA, "x", "inside")
	put(f, dir, tenantB, "x", "outside")
	must.Do(f, os.WriteFile(filepath.Join(dir, "x"), []byte("outside"), 0o600))
	s, err := Open("file://" + dir)
	must.Do(f, err)
	for _, name := range []string{"x", "../x", "../" + tenantB.String() + "/x", "/x", "a/../../x", "..\\x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, err := s.Read(t.Context(), tenantA, name, 100); err == nil && string(got) != "inside" {
			t.Fatalf("%q gives %q", name, got)
		}
	})
}
