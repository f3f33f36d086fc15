package router

import (
	"strings"
	"testing"

	"facet/internal/id"
)

// Roles that reach all galleries can't be bound to some.
func TestKeyTermsRefuseGalleries(t *testing.T) {
	t.Parallel()
	for _, name := range Roles {
		role, _ := ParseRole(name)
		err := checkTerms(&KeyTerms{Role: role, Galleries: []id.Gallery{{}}})
		whole := role == RoleAdmin || role == RoleAuditor
		if (err != nil) != whole || err != nil && (KindOf(err) != InvalidRequest || !strings.Contains(err.Error(), "role "+name+" can't be bound to galleries")) {
			t.Errorf("a key of the role %s that is bound to a gallery: %v", name, err)
		}
	}
}
