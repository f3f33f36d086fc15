package tenants

import (
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
	holderMax       = 128
	keyGalleriesMax = 64
	keyNetworksMax  = 16
)

// checkTerms returns an error for terms that no access key can have.
func checkTerms(t *router.KeyTerms) error {
	switch {
	case len(t.Holder) > holderMax || !utf8.ValidString(t.Holder) || slices.ContainsFunc([]rune(t.Holder), unicode.IsControl):
		return router.Errorf(router.InvalidRequest, "", "a holder's name has at most %d bytes of text", holderMax)
	case len(t.Galleries) > keyGalleriesMax:
		return router.Errorf(router.InvalidRequest, "", "an access key is bound to at most %d galleries", keyGalleriesMax)
	case len(t.Networks) > keyNetworksMax:
		return router.Errorf(router.InvalidRequest, "", "an access key is bound to at most %d networks", keyNetworksMax)
	case len(t.Galleries) > 0 && t.Role == router.RoleAdmin:
		return router.Errorf(router.InvalidRequest, "", "an access key of the role %s can't be bound to galleries: it manages all of them", t.Role)
	case len(t.Galleries) > 0 && t.Role == router.RoleAuditor:
		return router.Errorf(router.InvalidRequest, "", "an access key of the role %s can't be bound to galleries: it reads the log of the whole tenant", t.Role)
	}
	for i, n := range t.Networks {
		if !n.IsValid() {
			return router.Errorf(router.InvalidRequest, "", "%d. network: not a network such as 10.0.0.0/8", i+1)
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
			return router.Errorf(router.InvalidRequest, "", "a holder's name has only characters that people see: leave out %U", c)
		}
	}
	if strings.Join(strings.Fields(name), " ") != name || !norm.NFC.IsNormalString(name) {
		return router.Errorf(router.InvalidRequest, "", "a holder's name has single blanks between its words and none around them, and is in Unicode's form C")
	}
	return nil
}

// recordOf returns the terms as meta keeps them.
func recordOf(t *router.KeyTerms) metafsm.AccessKey {
	k := metafsm.AccessKey{Role: metafsm.Role(t.Role), Holder: t.Holder, Galleries: t.Galleries}
	for _, n := range t.Networks {
		k.Networks = append(k.Networks, n.String())
	}
	if !t.Ends.IsZero() {
		k.Ends = t.Ends.UnixMilli()
	}
	return k
}

func termsOf(k *metafsm.AccessKey) router.KeyTerms {
	t := router.KeyTerms{Role: router.Role(k.Role), Holder: k.Holder, Galleries: k.Galleries, Ends: timeOf(k.Ends)}
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

// GalleryNamed returns the gallery of a tenant with a name. The error is NotFound when there is none.
// The caller has asked for the tenant, so this node has caught up with meta's leader.
func (r *TenantRequests) GalleryNamed(tenant id.Tenant, name string) (id.Gallery, error) {
	for _, g := range r.cluster.Groups.Meta().Galleries(tenant) {
		if g.Name == name {
			return g.ID, nil
		}
	}
	return id.Gallery{}, router.Errorf(router.NotFound, "", "the tenant has no gallery %q", name)
}

// GalleryName returns the name of a gallery, or its id if there is no such gallery.
func (r *TenantRequests) GalleryName(g id.Gallery) string {
	if found, ok := r.cluster.Groups.Meta().Gallery(g); ok {
		return found.Name
	}
	return g.String()
}
