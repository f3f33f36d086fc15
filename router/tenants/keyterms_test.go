package tenants

import (
	"strings"
	"testing"

	"facet/internal/id"
	"facet/router"
)

// Roles that reach all galleries can't be bound to some.
func TestKeyTermsRefuseGalleries(t *testing.T) {
	t.Parallel()
	for _, name := range router.Roles {
		role, _ := router.ParseRole(name)
		err := checkTerms(&router.KeyTerms{Role: role, Galleries: []id.Gallery{{}}})
		whole := role == router.RoleAdmin || role == router.RoleAuditor
		if (err != nil) != whole || err != nil && (router.KindOf(err) != router.InvalidRequest || !strings.Contains(err.Error(), "role "+name+" can't be bound to galleries")) {
			t.Errorf("a key of the role %s that is bound to a gallery: %v", name, err)
		}
	}
}
