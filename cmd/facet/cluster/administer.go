package cluster

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
)

// Administer makes an administrator's certificate beside the node in dir, or renews it, and
// makes the node's profile name it. It returns the profile. It fails if the authority is not the
// node's.
func Administer(ctx context.Context, dir string, access authority.Access) (profile string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	f := folder(abs)
	p, err := admin.ReadProfile(f.profile())
	if err != nil {
		return "", fmt.Errorf("%w: --dir must name the folder of a node that \"facet cluster init\" or \"join\" made", err)
	}
	access.Dir, access.Admin = cmp.Or(access.Dir, authority.Beside(abs)), f.admin()
	a, err := access.OpenFor(ctx, filepath.Join(f.certificates(), "ca.pem"))
	if err != nil {
		return "", err
	}
	p.Certificates = a.Admin()
	return f.profile(), p.Write(f.profile())
}
