package router

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

const (
	holderMax       = 128
	keyGalleriesMax = 64
	keyNetworksMax  = 16
)

// KeyTerms say what an access key may do, from where and how long, and who holds it.
type KeyTerms struct {
	Role Role
	// Holder names the person or device that has the key, or is empty. Keys of one role and
	// holder succeed each other.
	Holder string
	// Galleries are the only ones that the key may use. None means all of the tenant.
	Galleries []id.Gallery
	// Networks are the only ones that requests may come from. None means all.
	Networks []netip.Prefix
	// Ends is when the key ends, to the millisecond. The zero time means never.
	Ends time.Time
}

// checkTerms returns an error for terms that no access key can have.
func checkTerms(t *KeyTerms) error {
	switch {
	case len(t.Holder) > holderMax || !utf8.ValidString(t.Holder) || slices.ContainsFunc([]rune(t.Holder), unicode.IsControl):
		return Errorf(InvalidRequest, "", "a holder's name has at most %d bytes of text", holderMax)
	case len(t.Galleries) > keyGalleriesMax:
		return Errorf(InvalidRequest, "", "an access key is bound to at most %d galleries", keyGalleriesMax)
	case len(t.Networks) > keyNetworksMax:
		return Errorf(InvalidRequest, "", "an access key is bound to at most %d networks", keyNetworksMax)
	case len(t.Galleries) > 0 && t.Role == RoleAdmin:
		return Errorf(InvalidRequest, "", "an access key of the role %s can't be bound to galleries: it manages all of them", t.Role)
	case len(t.Galleries) > 0 && t.Role == RoleAuditor:
		return Errorf(InvalidRequest, "", "an access key of the role %s can't be bound to galleries: it reads the log of the whole tenant", t.Role)
	}
	for i, n := range t.Networks {
		if !n.IsValid() {
			return Errorf(InvalidRequest, "", "%d. network: not a network such as 10.0.0.0/8", i+1)
		}
		t.Networks[i] = n.Masked()
	}
	return nil
}

// checkHolder returns an error for the name of a new holder that looks like another one: two names that
// look alike are two people, and one of them may be revoked in the place of the other.
func checkHolder(name string) error {
	for _, c := range name {
		if !unicode.IsPrint(c) || unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || c == '\u2800' {
			return Errorf(InvalidRequest, "", "a holder's name has only characters that people see: leave out %U", c)
		}
	}
	if strings.Join(strings.Fields(name), " ") != name || !norm.NFC.IsNormalString(name) {
		return Errorf(InvalidRequest, "", "a holder's name has single blanks between its words and none around them, and is in Unicode's form C")
	}
	return nil
}

// recordOf returns the terms as meta keeps them.
func recordOf(t *KeyTerms) metafsm.AccessKey {
	k := metafsm.AccessKey{Role: metafsm.Role(t.Role), Holder: t.Holder, Galleries: t.Galleries}
	for _, n := range t.Networks {
		k.Networks = append(k.Networks, n.String())
	}
	if !t.Ends.IsZero() {
		k.Ends = t.Ends.UnixMilli()
	}
	return k
}

func termsOf(k *metafsm.AccessKey) KeyTerms {
	t := KeyTerms{Role: Role(k.Role), Holder: k.Holder, Galleries: k.Galleries, Ends: timeOf(k.Ends)}
	for _, text := range k.Networks {
		n, _ := netip.ParsePrefix(text) // the zero network, which has no address, if it is none
		t.Networks = append(t.Networks, n)
	}
	return t
}

// timeOf returns the time of milliseconds since 1970, or the zero time for 0.
func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// Allows returns why a request from an address may not use the key, or "". The message is for the
// key's holder.
func (t *KeyTerms) Allows(from netip.Addr, now time.Time) (refusal string) {
	if !t.Ends.IsZero() && !now.Before(t.Ends) {
		return fmt.Sprintf("The access key ended at %s.", t.Ends.Format(time.RFC3339))
	}
	if len(t.Networks) > 0 && !slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool { return n.Contains(from) }) {
		return fmt.Sprintf("The access key may not be used from the address %s.", from)
	}
	return ""
}

// Reaches reports whether the key may use a gallery of its tenant.
func (t *KeyTerms) Reaches(g id.Gallery) bool {
	return len(t.Galleries) == 0 || slices.Contains(t.Galleries, g)
}

// GalleryNamed returns the gallery of a tenant with a name. The error is NotFound when there is none.
// The caller has asked for the tenant, so this node has caught up with meta's leader.
func (r *accessRequests) GalleryNamed(tenant id.Tenant, name string) (id.Gallery, error) {
	for _, g := range r.cluster.groups.Meta().Galleries(tenant) {
		if g.Name == name {
			return g.ID, nil
		}
	}
	return id.Gallery{}, Errorf(NotFound, "", "the tenant has no gallery %q", name)
}

// GalleryName returns the name of a gallery, or its id if there is no such gallery.
func (r *accessRequests) GalleryName(g id.Gallery) string {
	if found, ok := r.cluster.groups.Meta().Gallery(g); ok {
		return found.Name
	}
	return g.String()
}
