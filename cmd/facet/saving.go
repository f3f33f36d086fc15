package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/tenant"
)

// saving is --save of a command that makes an access key: the tenant's profile to write.
type saving struct {
	name    string
	profile tenant.Profile
}

// flag adds --save to cmd.
func (s *saving) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.name, "save", "", "new file for the tenant's profile, which keeps the secret instead of showing it")
	cmd.Flags().StringVar(&s.profile.Region, "region", "", "with --save, the region of signatures, if the nodes have another one than by default")
}

// open reserves the file and finds out what the profile says of the cluster, before a key is made.
func (s *saving) open(ctx context.Context, c *admin.Client) error {
	if s.name == "" {
		return nil
	}
	var err error
	if s.profile.BaseURLs, err = baseURLs(ctx, c); err != nil {
		return err
	}
	ca, err := os.ReadFile(authorityOf(c))
	if err != nil {
		return fmt.Errorf("read the authority's certificate: %w", err)
	}
	s.profile.CA = string(ca)
	return s.profile.Reserve(s.name)
}

// baseURLs returns the URLs of the nodes.
func baseURLs(ctx context.Context, c *admin.Client) (urls []string, err error) {
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range status.Nodes {
		if n.URL != "" {
			urls = append(urls, n.URL)
		}
	}
	if len(urls) == 0 {
		return nil, errors.New("no node tells its URL: facet status shows why")
	}
	return urls, nil
}

// authorityOf returns the file with the authority of the nodes' certificates.
func authorityOf(c *admin.Client) string { return filepath.Join(c.Folder(), "ca.pem") }

// drop removes the file again.
func (s *saving) drop() error {
	if s.name == "" {
		return nil
	}
	return os.Remove(s.name)
}

// write writes the profile. It returns the secret if that is to be shown.
func (s *saving) write(accessKey, secretKey string) (shown string, err error) {
	if s.name == "" {
		return secretKey, nil
	}
	s.profile.AccessKey, s.profile.SecretKey = accessKey, secretKey
	if err := s.profile.Write(s.name); err != nil {
		return "", fmt.Errorf("the access key %s was made, but its profile was not written: %w; revoke it with facet key revoke", accessKey, err)
	}
	return "", nil
}

// describe returns the line about the secret or the profile.
func (s *saving) describe(secret string) string {
	if s.name == "" {
		return "secret key  " + secret + "\n"
	}
	return fmt.Sprintf("profile     %s (it has the secret: keep it safe)\n", s.name)
}
