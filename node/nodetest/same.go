package nodetest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"

	"facet/router"
)

// As returns a client with the keys of a client of another cluster that this one
// trusts, on the machine's own network.
func (c *Cluster) As(other *Client) *Client {
	c.t.Helper()
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(c.Roots)
	must(c.t, err)
	if !roots.AppendCertsFromPEM(pem) {
		c.t.Fatal("the authority's certificate can't be read")
	}
	client := &Client{APIKey: other.APIKey, signer: other.signer, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableCompression: true,
	}}}
	c.t.Cleanup(client.Close)
	return client
}

// Keyed returns a client that signs with another key.
func (c *Client) Keyed(key router.AccessKey) *Client {
	again := *c
	again.signer.AccessKey, again.signer.SecretKey = key.ID, key.Secret
	return &again
}
