package doctor

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"facet/cmd/facet/config"
	"facet/node/cert"
	"facet/node/datadir"
)

const (
	renew = "run facet cluster renew on the machine with the authority"
	// expirySoon is how long before its end a certificate is a warning.
	expirySoon = 30 * 24 * time.Hour
)

// certificates checks the certificates and keys of the node.
func (x *examination) certificates(s *config.Settings) {
	in := func(name string) string { return filepath.Join(s.Certificates, name) }
	for _, c := range []struct {
		name  string
		check func(s *config.Settings, source *cert.Source) error
	}{{"node", ofThisNode}, {"server", ofPublicURL}, {"status", ofAuthority}} {
		check := c.name + ".pem"
		if _, err := os.Stat(in(check)); c.name == "status" && errors.Is(err, fs.ErrNotExist) {
			continue // the administrator's own certificate may be in use here
		}
		source, err := cert.Load(cert.Files{CA: in("ca.pem"), Cert: in(check), Key: in(c.name + ".key")}, slog.New(slog.DiscardHandler))
		if err != nil {
			x.problem(check, "make it with facet cluster join, or facet certs issue", "%v", err)
			continue
		}
		if err := c.check(s, source); err != nil {
			x.problem(check, renew+", or facet certs issue", "%v", err)
			continue
		}
		x.expiry(check, source.Leaf().NotBefore, source.Leaf().NotAfter)
		x.keyMode(c.name+".key", in(c.name+".key"))
		if c.name == "node" {
			x.expiry("ca.pem", time.Time{}, source.AuthorityEnd())
		}
	}
}

// expiry checks the validity of a certificate.
func (x *examination) expiry(check string, from, to time.Time) {
	const day = 24 * time.Hour
	left := time.Until(to)
	x.ends = append(x.ends, limit{"certificate", yearOf(left), fmt.Sprintf("%s ends on %s, in %d days", check, to.Format(time.DateOnly), int(left/day))})
	switch {
	case time.Until(from) > 0:
		x.problem(check, "look at the clock", "is not valid before %s", from.Format(time.RFC3339))
	case left <= 0:
		x.problem(check, renew, "ended on %s", to.Format(time.DateOnly))
	case left < expirySoon:
		x.warn(check, renew, "ends on %s, in %d days", to.Format(time.DateOnly), int(left/day))
	default:
		x.ok(check, "is valid until %s, %d days", to.Format(time.DateOnly), int(left/day))
	}
}

// ofAuthority returns an error if no authority in ca.pem has signed the certificate.
func ofAuthority(_ *config.Settings, source *cert.Source) error {
	if !source.Trusts(source.Leaf()) {
		return errors.New("the authority in ca.pem has not signed it")
	}
	return nil
}

// ofThisNode returns an error if the certificate is of another node than the data directory.
func ofThisNode(s *config.Settings, source *cert.Source) error {
	if err := ofAuthority(s, source); err != nil {
		return err
	}
	who, err := cert.NodeIn(source.Leaf())
	if err != nil {
		return errors.New("it is no certificate of a node")
	}
	if _, err := os.Stat(filepath.Join(s.Dir, datadir.IdentityFile)); err != nil {
		return nil // no data yet
	}
	own, err := datadir.Open(s.Dir)
	if err == nil && own.Node != who {
		err = errors.New("it is of the node " + who.String() + ", and the data directory of " + own.Node.String())
	}
	return err
}

// ofPublicURL returns an error if clients that call the public URL refuse the certificate.
func ofPublicURL(s *config.Settings, source *cert.Source) error {
	u, err := url.Parse(cmp.Or(s.PublicURL, "https://"+s.PublicAddress))
	if err != nil {
		return err
	}
	if host := u.Hostname(); host != "" && host != "0.0.0.0" && host != "::" {
		if err := source.Leaf().VerifyHostname(host); err != nil {
			return hostname(err)
		}
	}
	return nil
}

// hostname shortens the error about a host.
func hostname(err error) error {
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return errors.New("it does not name the host of public-url, " + wrong.Host)
	}
	return err
}
