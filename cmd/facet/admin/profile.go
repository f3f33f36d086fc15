package admin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

const profileBytesMax = 64 << 10

// Profile is a file that names a cluster for commands, and how they authenticate.
type Profile struct {
	// Admin lists the admin ports of nodes, host:port, in the order of attempts.
	Admin []string `yaml:"admin"`
	// Certificates is a folder with ca.pem, admin.pem and admin.key (or the
	// read-only status.pem and status.key). A relative path starts at the profile's
	// own folder.
	Certificates string `yaml:"certificates"`
}

// ReadProfile reads a profile.
func ReadProfile(name string) (Profile, error) {
	var p Profile
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("there is no profile %s", name)
	}
	if err != nil {
		return p, fmt.Errorf("read the profile: %w", err)
	}
	defer f.Close()
	d := yaml.NewDecoder(io.LimitReader(f, profileBytesMax))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("read the profile %s: %w", name, err)
	}
	if len(p.Admin) == 0 || p.Certificates == "" {
		return p, fmt.Errorf("the profile %s needs admin (addresses) and certificates (a folder)", name)
	}
	if !filepath.IsAbs(p.Certificates) {
		p.Certificates = filepath.Join(filepath.Dir(name), p.Certificates)
	}
	return p, nil
}

// Write writes a profile, by rename.
func (p Profile) Write(name string) error {
	b, err := yaml.Marshal(p)
	if err == nil {
		err = os.WriteFile(name+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

// Target returns the target that the profile names.
func (p Profile) Target() Target { return Target{Addresses: p.Admin, Certificates: p.Certificates} }
