//go:build long

package clouds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/bucket"
	_ "facet/node/bucket/clouds"
	"facet/node/nodetest"
	"facet/router/jobs"
)

// startS3 runs an S3 server on a folder with one bucket, and returns the bucket's
// URL. It puts the keys into this process's environment, where the library looks
// for them.
func startS3(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../../assets/tools/versitygw")
	must.Do(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the S3 server is missing (\"make s3\" builds it): %v", err)
	}
	const access, secret, name = "facet-test", "facet-test-secret", "photos"
	t.Setenv("AWS_ACCESS_KEY_ID", access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, program, "--access", access, "--secret", secret, "--port", address, "posix", dir)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	must.Do(t, server.Start())
	t.Cleanup(func() {
		cancel()
		if server.Wait(); t.Failed() {
			t.Logf("the S3 server says:\n%s", log.Bytes())
		}
	})
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the S3 server does not answer: %v", err)
		}
	}
	return fmt.Sprintf("s3://%s?endpoint=http://%s&region=us-east-1&use_path_style=true", name, address)
}

func put(t *testing.T, url, key, text string) {
	t.Helper()
	b, err := blob.OpenBucket(t.Context(), url)
	must.Do(t, err)
	defer b.Close()
	must.Do(t, b.WriteAll(t.Context(), key, []byte(text), nil))
}

func TestFilesAreReadFromS3(t *testing.T) {
	url := startS3(t)
	tenant, other := id.Tenant{UUID: id.UUID{0xa}}, id.Tenant{UUID: id.UUID{0xb}}
	put(t, url, tenant.String()+"/staff/ä b.jpg", "ann")
	put(t, url, other.String()+"/bob.jpg", "bob")
	s, err := bucket.Open(url)
	must.Do(t, err)
	defer s.Close()
	if got, err := s.Read(t.Context(), tenant, "staff/ä b.jpg", 3); string(got) != "ann" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := s.Read(t.Context(), tenant, "staff/ä b.jpg", 2); !errors.Is(err, jobs.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	for _, name := range []string{"bob.jpg", "../" + other.String() + "/bob.jpg", "staff", "/staff/ä b.jpg"} {
		if got, err := s.Read(t.Context(), tenant, name, 100); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	gone, err := bucket.Open(strings.Replace(url, "photos", "nowhere", 1))
	must.Do(t, err)
	defer gone.Close()
	if _, err := gone.Read(t.Context(), tenant, "x", 100); err == nil {
		t.Error("a bucket that does not exist is read")
	}
}

func TestJobRegistersFromS3(t *testing.T) {
	url := startS3(t)
	cluster := nodetest.Start(t, nodetest.Options{Bucket: url})
	c, tenant := cluster.ClientOf("bank")
	var g struct{ APIKey string }
	c.Call(t, cluster.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": "g", "description": "", "size": 100, "faceMinimumQualityScore": 0.45,
	}).Decode(t, &g)
	c.APIKey = g.APIKey
	var list []map[string]any
	for i := range 20 {
		name := fmt.Sprintf("%d.jpg", i)
		put(t, url, tenant.String()+"/"+name, fmt.Sprint("person ", i))
		list = append(list, map[string]any{"filename": name})
	}
	var b struct{ BatchID string }
	a := c.Call(t, cluster.Nodes[1].URL, http.MethodPost, "/v1.1/jobs/bulkregister", map[string]any{"registrations": list})
	if a.Decode(t, &b); a.Status != http.StatusOK {
		t.Fatalf("begin a job: %d %s", a.Status, a.Body)
	}
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		a := c.Call(t, cluster.Nodes[2].URL, http.MethodGet, "/v1.1/jobs/bulkregister/"+b.BatchID, nil)
		if n := bytes.Count(a.Body, []byte(`"registerStatus":"Success"`)); n == len(list) {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the job does not end: %s", a.Body)
		}
	}
	var all struct{ Total int }
	if c.Call(t, cluster.Nodes[0].URL, http.MethodGet, "/v1.1/subjects", nil).Decode(t, &all); all.Total != len(list) {
		t.Errorf("the gallery has %d entries", all.Total)
	}
}
