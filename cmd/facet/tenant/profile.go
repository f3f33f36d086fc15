package tenant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"facet.internal/client"
	"facet/cmd/facet/cli"
)

const (
	// profileVariable names a profile for all commands of a shell.
	profileVariable = "FACET_PROFILE"
	// SecretVariable has the secret key for a profile without one.
	SecretVariable = "FACET_SECRET_KEY"
	// keyVariable has the API key of the gallery.
	keyVariable = "FACET_API_KEY"
	// PurposeHelp is the help of the flag for what requests state as their purpose.
	PurposeHelp = "your ground, which the audit log keeps with each request (256 printable ASCII characters)"
	// devFolder is the folder of facet dev, devProfile the profile in it.
	devFolder, devProfile = "./dev", "dev.json"
)

// Profile is a tenant's profile: a file that names a cluster and the keys for it. The dev.json
// of facet dev is one. client.ReadProfile reads it.
type Profile struct {
	BaseURLs  []string `json:"base_urls"`
	CA        string   `json:"ca,omitempty"` // the authority of the nodes' certificates, PEM
	AccessKey string   `json:"access_key"`
	SecretKey string   `json:"secret_key"`
	Region    string   `json:"region,omitempty"` // of signatures
}

// Reserve makes a new file for a profile that only its owner may read, so that Write finds a
// place for a secret that is shown once.
func (p Profile) Reserve(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("there is a file %s already: name a new one for the profile", name)
	}
	if err != nil {
		return fmt.Errorf("make the profile: %w", err)
	}
	return f.Close()
}

// Write writes the profile to the file that Reserve made.
func (p Profile) Write(name string) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = os.WriteFile(name, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

// Connection has the flags that name a profile.
type Connection struct {
	profile, dir, purpose string
	set                   *pflag.FlagSet
}

// Flags adds the flags.
func (c *Connection) Flags(f *pflag.FlagSet) {
	c.set = f
	f.StringVar(&c.profile, "profile", "", "the tenant's profile (default: "+profileVariable+", else the cluster of facet dev)")
	f.StringVar(&c.dir, "dir", devFolder, "folder of a cluster of facet dev")
}

// PurposeFlag adds the flag for what the requests state as their purpose, unless the command has another purpose: a
// gallery's.
func (c *Connection) PurposeFlag(f *pflag.FlagSet) {
	if f.Lookup("purpose") == nil {
		f.StringVar(&c.purpose, "purpose", "", PurposeHelp)
	}
}

// Named reports whether a flag or the environment names a profile.
func (c *Connection) Named() bool {
	return c.profile != "" || c.set.Changed("dir") || os.Getenv(profileVariable) != ""
}

// find returns the name of the profile: --profile, or that of --dir, or the variable's, or that
// of the cluster in ./dev.
func (c *Connection) find() (string, error) {
	dir := c.set.Changed("dir")
	if c.profile != "" && dir {
		return "", cli.Misuse(errors.New("--profile and --dir each name a cluster: give one of them"))
	}
	if c.profile != "" {
		return c.profile, nil
	}
	if name := os.Getenv(profileVariable); name != "" && !dir {
		return name, nil
	}
	name := filepath.Join(c.dir, devProfile)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no cluster is named and facet dev runs none in %s: start one with \"facet dev\", or name the tenant's profile with --profile or %s",
			c.dir, profileVariable)
	}
	return name, nil
}

// Read returns the profile's file and what it says.
func (c *Connection) Read() (name string, cfg client.Config, err error) {
	if name, err = c.find(); err != nil {
		return "", client.Config{}, err
	}
	cfg, err = client.ReadProfile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", client.Config{}, fmt.Errorf("there is no profile %s", name)
	}
	if err != nil {
		return "", client.Config{}, fmt.Errorf("%w: this needs a tenant's profile, which facet tenant create and facet key create write with --save, not an operator's", err)
	}
	if cfg.SecretKey == "" {
		cfg.SecretKey = os.Getenv(SecretVariable)
	} else if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(os.Stderr, "facet: others can read the secret key in %s: chmod 600 %s\n", name, name)
	}
	if cfg.SecretKey == "" {
		return "", client.Config{}, fmt.Errorf("the profile %s has no secret_key: set %s", name, SecretVariable)
	}
	cfg.Purpose = c.purpose
	return name, cfg, nil
}

// open returns a session of the profile's tenant.
func (c *Connection) open() (*session, error) {
	name, cfg, err := c.Read()
	if err != nil {
		return nil, err
	}
	opened, err := client.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("open the profile %s: %w", name, err)
	}
	return &session{Client: opened, cfg: cfg, profile: name}, nil
}
