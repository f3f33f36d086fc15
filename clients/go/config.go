package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Bounds and defaults.
const (
	triesDefault      = 8
	tryTimeoutDefault = 45 * time.Second // the service's own limit is 30 s
	backoffMin        = 100 * time.Millisecond
	backoffMax        = 3 * time.Second
	retryAfterMax     = time.Minute     // a refusal with a longer Retry-After is final
	restTime          = 5 * time.Second // how long a node without an answer is left alone
	dialTimeout       = 5 * time.Second
	answerBytesMax    = 64 << 20
	idleConnections   = 64 // for each node
	configBytesMax    = 1 << 20
	nodesMax          = 64
)

// The default scope of signatures.
const (
	regionDefault  = "ap-southeast-2"
	serviceDefault = "execute-api"
)

// Config describes a cluster and the keys to use. Zero fields take the defaults.
type Config struct {
	// BaseURLs are the nodes, each https://host:port. The client uses them in turn.
	// It does not call a node for some seconds after the node gave no answer.
	BaseURLs []string
	// PortalURLs are the nodes for tenant management. None means BaseURLs.
	PortalURLs []string
	// AccessKey and SecretKey sign requests.
	AccessKey, SecretKey string
	// APIKey selects the application and its gallery. See Client.WithAPIKey.
	APIKey string
	// Purpose is the caller's ground, case 4711 for example, which the audit log keeps with each request: at most 256
	// printable ASCII characters. See WithPurpose.
	Purpose string
	// Region and Service are the scope of signatures. The defaults are
	// ap-southeast-2 and execute-api.
	Region, Service string
	// CAFile is a PEM file with the authority of the nodes' certificates. Empty
	// means the system's authorities.
	CAFile string
	// TLS is the base of the connections' TLS configuration. The authority in
	// CAFile replaces its RootCAs. nil means the defaults.
	TLS *tls.Config
	// Dial connects to the host:port of a node. nil means the system's network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Tries is the most times that one request is sent (8).
	Tries int
	// TryTimeout is the longest time for one try (45 s). The context bounds all
	// tries together.
	TryTimeout time.Duration
}

// New returns a client. It does not connect.
func New(cfg Config) (*Client, error) {
	if cfg.AccessKey == "" || cfg.SecretKey == "" {
		return nil, errors.New("new client: no access key or no secret key")
	}
	if err := checkPurpose(cfg.Purpose); err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	cfg.defaults()
	base, err := newNodes(cfg.BaseURLs)
	if err != nil {
		return nil, fmt.Errorf("new client: base URLs: %w", err)
	}
	portal, err := newNodes(cfg.PortalURLs)
	if err != nil {
		return nil, fmt.Errorf("new client: portal URLs: %w", err)
	}
	transport, err := newTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	return &Client{
		apiKey: cfg.APIKey,
		core: &core{
			cfg: cfg, base: base, portal: portal,
			signer: signer{region: cfg.Region, service: cfg.Service, accessKey: cfg.AccessKey, secretKey: cfg.SecretKey},
			http: &http.Client{
				Transport: transport,
				// Redirects are not followed: a signature is valid for one host.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		},
	}, nil
}

func (cfg *Config) defaults() {
	if len(cfg.PortalURLs) == 0 {
		cfg.PortalURLs = cfg.BaseURLs
	}
	if cfg.Region == "" {
		cfg.Region = regionDefault
	}
	if cfg.Service == "" {
		cfg.Service = serviceDefault
	}
	if cfg.Tries <= 0 {
		cfg.Tries = triesDefault
	}
	if cfg.TryTimeout <= 0 {
		cfg.TryTimeout = tryTimeoutDefault
	}
	if cfg.Dial == nil {
		cfg.Dial = dialer().DialContext
	}
}

func newTransport(cfg Config) (*http.Transport, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	if cfg.CAFile != "" {
		pem, err := readFile(cfg.CAFile)
		if err != nil {
			return nil, err
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", cfg.CAFile)
		}
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure,
		DialContext: cfg.Dial, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute,
	}, nil
}

// readFile reads a file of at most configBytesMax.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err // the error names the file
	}
	if info.Size() > configBytesMax {
		return nil, fmt.Errorf("%s has more than %d bytes", name, configBytesMax)
	}
	return os.ReadFile(name)
}

// newNodes checks the addresses of nodes.
func newNodes(addresses []string) (*nodes, error) {
	if len(addresses) == 0 || len(addresses) > nodesMax {
		return nil, fmt.Errorf("%d, want 1 to %d", len(addresses), nodesMax)
	}
	var hosts []string
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil {
			return nil, err // the error names the address
		}
		if u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return nil, fmt.Errorf("%q is not of the form https://host:port", a)
		}
		hosts = append(hosts, u.Host)
	}
	return openNodes(hosts), nil
}
