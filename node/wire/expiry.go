package wire

import (
	"fmt"
	"time"
)

// expirySoon is how long before a certificate's end the warnings start.
const expirySoon = 30 * 24 * time.Hour

// Expiry is the end of validity of one certificate.
type Expiry struct {
	What string
	At   time.Time
}

// Expiries returns the ends of a node's certificates and of its authority's.
func (c *Credentials) Expiries() []Expiry {
	list := []Expiry{
		{"its certificate", c.NodeEnds}, {"its certificate for clients", c.ServerEnds}, {"the authority that it trusts", c.AuthorityEnds},
	}
	if !c.StatusEnds.IsZero() {
		list = append(list, Expiry{"the certificate for facet status on its machine", c.StatusEnds})
	}
	return list
}

// Soon reports whether the end is near enough for a warning.
func (e Expiry) Soon(now time.Time) bool { return e.At.Sub(now) < expirySoon }

// In describes what ends and when, for operators.
func (e Expiry) In(now time.Time) string {
	return fmt.Sprintf("%s ends on %s, in %d days", e.What, e.At.Format(time.DateOnly), int(e.At.Sub(now).Hours()/24))
}

// Same reports whether both describe the same key.
func (k KeyInfo) Same(other KeyInfo) bool { return k.ID == other.ID }
