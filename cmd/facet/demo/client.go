package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"facet/cmd/facet/dev"
	"facet/node/sigv4"
)

const (
	answerBytesMax = 8 << 20
	requestTimeout = 35 * time.Second // a little more than the service's own 30 s
	retriesMax     = 5
)

// client calls the service like an ordinary client.
type client struct {
	http   *http.Client
	signer sigv4.Signer
	apiKey string // of the application, once it exists
}

func newClient(i dev.Info) (*client, error) {
	ca, err := os.ReadFile(i.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the cluster's certificate is not one")
	}
	return &client{
		http: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
		signer: sigv4.Signer{Region: i.Region, Service: i.Service, AccessKey: i.AccessKey, SecretKey: i.SecretKey},
	}, nil
}

// refusal is an answer of the service other than success.
type refusal struct {
	Status    int    `json:"-"`
	Message   string `json:"message"`
	ErrorType string `json:"errorType"`
}

// Error returns the service's words.
func (r *refusal) Error() string {
	return fmt.Sprintf("the service answered %d %s: %s", r.Status, r.ErrorType, r.Message)
}

// request is one call. in is nil for a request without a body.
type request struct {
	method, url, path string
	key               string // Idempotency-Key: a repeated write has no second effect
	in, out           any
}

// do sends q. It repeats q while the service answers that it can't serve just now.
func (c *client) do(ctx context.Context, q request) error {
	var err error
	for try := range retriesMax {
		if err = c.send(ctx, q); !passing(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(try+1) * 200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return err
}

// passing reports whether the same request may succeed a little later.
func passing(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Status == http.StatusInternalServerError
}

func (c *client) send(ctx context.Context, q request) error {
	var body []byte
	if q.in != nil {
		var err error
		if body, err = json.Marshal(q.in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, q.method, q.url+q.path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if err := c.sign(r, q, body); err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err // the error names method and address already
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		f := &refusal{Status: answer.StatusCode}
		_ = json.Unmarshal(b, f) // otherwise there is no message
		return f
	}
	if q.out == nil {
		return nil
	}
	if err := json.Unmarshal(b, q.out); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// sign adds the headers of the interface, section 5.
func (c *client) sign(r *http.Request, q request, body []byte) error {
	headers := []sigv4.Header{{Name: "host", Value: r.URL.Host}}
	add := func(name, value string) {
		if value != "" {
			headers = append(headers, sigv4.Header{Name: name, Value: value})
		}
	}
	if len(body) > 0 {
		add("content-type", "application/json")
	}
	add("x-api-key", c.apiKey)
	add("idempotency-key", q.key)
	signed, err := c.signer.Sign(sigv4.Request{Method: q.method, Target: q.path, Headers: headers}, sha256.Sum256(body), time.Now())
	if err != nil {
		return err
	}
	for _, h := range append(headers[1:], signed...) {
		r.Header.Set(h.Name, h.Value)
	}
	return nil
}

// photo returns a file in base64.
func photo(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read photo: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b), nil
}
