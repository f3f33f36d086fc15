package bucket_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/bucket"
	_ "facet/node/bucket/clouds"
)

func TestErrorOfFileHidesItsName(t *testing.T) {
	t.Parallel()
	tenant := id.Tenant{UUID: id.UUID{0xa}}
	const name = "Anna Müller.jpg"
	dir := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(dir, tenant.String()), 0o700))
	must.Do(t, os.Symlink(name, filepath.Join(dir, tenant.String(), name)))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	const parameters = "&region=x&anonymous=true&s3ForcePathStyle=true"
	for address, want := range map[string]string{
		"file://" + dir: "symbolic links",
		"s3://photos?endpoint=" + refusing.URL + parameters:    "PermissionDenied",
		"s3://photos?endpoint=http://127.0.0.1:1" + parameters: "connection refused",
	} {
		s, err := bucket.Open(address)
		must.Do(t, err)
		_, err = s.Read(t.Context(), tenant, name, 100)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ller") || strings.Contains(err.Error(), "Anna") {
			t.Errorf("got %v, want %q without the file's name", err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorOfDriverHidesAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"s3://AKIA:canary@b/dir?region=x&secret=canary", "s3://AKIA:canary@b?secret=canary%2f ä", "gs://b?secret=canary", "azblob://b?token=canary"} {
		s, err := bucket.Open(address)
		if err == nil {
			_, err = s.Read(t.Context(), id.Tenant{}, "x.jpg", 10)
		}
		_, folderErr := bucket.OpenFolder(t.Context(), address)
		want := "query parameter"
		if bucket.Check(address) != nil {
			want = "slim build" // what -tags slim says of gs:// and azblob://
		}
		for _, err := range []error{err, folderErr} {
			if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}
