package wire

import (
	"fmt"
	"time"
)

// expirySoon is how long before a certificate's end nodes warn of it.
const expirySoon = 30 * 24 * time.Hour

// Expiry is the end of validity of one certificate.
type Expiry struct {
	What string
	At   time.Time
}

// Expiries returns the ends of what a node and others trust each other by.
func (c *Credentials) Expiries() []Expiry {
	list := []Expiry{
		{"its certificate", c.NodeEnds}, {"its certificate for clients", c.ServerEnds}, {"the authority that it trusts", c.AuthorityEnds},
	}
	if !c.StatusEnds.IsZero() {
		list = append(list, Expiry{"the certificate for facet status on its machine", c.StatusEnds})
	}
	return list
}

// Soon reports whether the end is near enough to be warned of.
func (e Expiry) Soon(now time.Time) bool { return e.At.Sub(now) < expirySoon }

// In says in words what ends, and when.
func (e Expiry) In(now time.Time) string {
	return fmt.Sprintf("%s ends on %s, in %d days", e.What, e.At.Format(time.DateOnly), int(e.At.Sub(now).Hours()/24))
}

// Same reports whether two descriptions are of the same key.
func (k KeyInfo) Same(other KeyInfo) bool { return k.ID == other.ID }
