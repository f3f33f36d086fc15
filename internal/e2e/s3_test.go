//go:build long

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"facet/internal/must"
	"facet/internal/testkit/launch"
)

// s3 is a real S3 server with one bucket, whose objects are files in dir.
type s3 struct {
	url string // of a folder in the bucket
	dir string // folder of that folder's objects on disk
}

// startS3 runs the server. It puts the keys into this process's environment, which
// nodes started from now on inherit.
func startS3(t *testing.T) s3 {
	t.Helper()
	server := filepath.Join(root, "assets", "tools", "versitygw")
	if _, err := os.Stat(server); err != nil {
		t.Fatalf("the S3 server is missing (\"make s3\" builds it): %v", err)
	}
	const access, secret, bucket = "facet-test", "facet-test-secret", "copies"
	t.Setenv("AWS_ACCESS_KEY_ID", access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, bucket), 0o700))
	address := freeAddress(t)
	p, err := launch.Start(exec.Command(server, "--access", access, "--secret", secret, "--port", address, "posix", dir), starter.Start)
	must.Do(t, err)
	t.Cleanup(func() {
		if p.End(syscall.SIGKILL); t.Failed() {
			t.Logf("the S3 server says:\n%s", &p.Out)
		}
	})
	within(t, "the S3 server answers", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	})
	return s3{
		url: fmt.Sprintf("s3://%s/facet?endpoint=http://%s&region=us-east-1&use_path_style=true", bucket, address),
		dir: filepath.Join(dir, bucket, "facet"),
	}
}

// objects returns the objects of a folder by their names.
func (s s3) objects(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, folder, "*"))
	must.Do(t, err)
	all := map[string]string{}
	for _, name := range names {
		raw := read(t, name)
		all[filepath.Base(name)] = string(raw)
	}
	return all
}
