package router

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
)

// Role is the role of an access key. It decides what the key may do.
type Role uint8

// The roles of access keys. The numbers are stored.
const (
	// RoleAdmin may do everything, the tenant management interface included.
	RoleAdmin Role = 1
	// RoleBiometric may do everything but tenant management.
	RoleBiometric Role = 2
	// RoleReadOnly may search, verify, extract, compare, list and ask for health.
	RoleReadOnly Role = 3
	// RoleEnrolOnly may register subjects, and follow the bulk registrations of its holder.
	RoleEnrolOnly Role = 4
	// RoleSearchOnly may search.
	RoleSearchOnly Role = 5
	// RoleReviewer may list cases and give verdicts.
	RoleReviewer Role = 6
	// RoleAuditor may read the tenant's audit log.
	RoleAuditor Role = 7
)

// AccessKey is the key pair that signs a tenant's requests.
type AccessKey struct {
	// ID is the public part. A request's credential contains it.
	ID string
	// Secret is the secret key. It is never logged.
	Secret string
	Tenant id.Tenant
	KeyTerms
	// Disabled reports that operators have disabled the tenant, or are deleting it.
	Disabled bool
}

// The names of roles, as operators write them.
var roleNames = map[Role]string{
	RoleAdmin: "admin", RoleBiometric: "biometric", RoleReadOnly: "read-only", RoleEnrolOnly: "enrol-only", RoleSearchOnly: "search-only",
	RoleReviewer: "reviewer", RoleAuditor: "auditor",
}

// Roles are the names of all roles, those with the most rights first.
var Roles = []string{"admin", "biometric", "read-only", "enrol-only", "search-only", "reviewer", "auditor"}

// String returns the name of the role.
func (r Role) String() string {
	if name, ok := roleNames[r]; ok {
		return name
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// ParseRole returns the role with this name.
func ParseRole(name string) (Role, error) {
	for r, n := range roleNames {
		if n == name {
			return r, nil
		}
	}
	return 0, Errorf(InvalidRequest, "", "a role is one of %s, not %q", strings.Join(Roles, ", "), name)
}

// KeyRecord is an access key as operators see it, without its secret.
type KeyRecord struct {
	ID string
	KeyTerms
	Revoked bool
	Created time.Time // to the millisecond
	Used    time.Time // about when it was used last (NoteKeyUses); the zero time: never noted
}

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
