package auditing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"facet.internal/client"
)

const (
	webTimeout     = time.Minute // of one file
	authorityBytes = 1 << 20
)

// ErrGone is returned for a bundle whose entries are past the tenant's retention: their hashes stay.
var ErrGone = errors.New("the entries are past their retention")

// Source reads the files of one log.
type Source interface {
	// Read returns a file, of at most limit bytes, by its path below the log's prefix. The error wraps
	// fs.ErrNotExist for a file that is not there, and ErrGone.
	Read(ctx context.Context, path string, limit int) ([]byte, error)
}

// OpenSource returns the log in a folder, in an object store, at an https URL, or of the tenant of a profile. ca
// is a PEM file with the authority of an https URL's certificate; without one, those of the system count.
func OpenSource(ctx context.Context, where, ca string) (Source, error) {
	switch {
	case strings.HasPrefix(where, "https://"):
		return newWeb(where, ca)
	case IsURL(where):
		return OpenBucket(ctx, where)
	}
	info, err := os.Stat(where)
	if err != nil {
		return nil, fmt.Errorf("find the log: %w", err)
	}
	if info.IsDir() {
		return OpenFolder(where)
	}
	c, err := client.FromProfile(where)
	if err != nil {
		return nil, err
	}
	return Cluster{c}, nil
}

// Cluster reads the log of a client's tenant.
type Cluster struct{ Client *client.Client }

// Read implements Source.
func (c Cluster) Read(ctx context.Context, path string, limit int) ([]byte, error) {
	b, err := c.Client.AuditFile(ctx, path)
	e, refused := errors.AsType[*client.Error](err)
	switch {
	case refused && e.Status == http.StatusGone:
		return nil, fmt.Errorf("%s: %w", path, ErrGone)
	case refused && e.Status == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w: %w", path, fs.ErrNotExist, err)
	case err != nil:
		return nil, err
	case len(b) > limit:
		return nil, tooLong(path, limit)
	}
	return b, nil
}

func tooLong(path string, limit int) error {
	return fmt.Errorf("%s has more than %d bytes", path, limit)
}

// web reads a log that a web server has as files.
type web struct {
	prefix string // ends in a slash
	http   *http.Client
}

func newWeb(url, ca string) (web, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := ReadFile(ca, authorityBytes)
		if err != nil {
			return web{}, err
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return web{}, fmt.Errorf("%s has no certificate", ca)
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, MaxIdleConnsPerHost: batchBundles, IdleConnTimeout: webTimeout, ForceAttemptHTTP2: true}
	return web{strings.TrimRight(url, "/") + "/", &http.Client{Transport: transport, Timeout: webTimeout}}, nil
}

// Read implements Source.
func (w web) Read(ctx context.Context, path string, limit int) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.prefix+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	a, err := w.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer a.Body.Close()
	switch a.StatusCode {
	case http.StatusOK:
		return readAtMost(a.Body, path, limit)
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s%s: %w", w.prefix, path, fs.ErrNotExist)
	case http.StatusGone:
		return nil, fmt.Errorf("%s%s: %w", w.prefix, path, ErrGone)
	default:
		return nil, fmt.Errorf("%s%s: the server answers %s", w.prefix, path, a.Status)
	}
}

func readAtMost(r io.Reader, path string, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > limit {
		return nil, tooLong(path, limit)
	}
	return b, nil
}
