package authority

import (
	"crypto/tls"
	"crypto/x509"

	"facet/node/cert"
)

// leafOf reads the certificate in files.
func leafOf(files cert.Files) (*x509.Certificate, error) {
	pair, err := cert.LoadPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	parsed, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	return parsed.Leaf, nil
}
