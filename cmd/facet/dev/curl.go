package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ensureCurl writes curl.conf if it is missing. It keeps an existing file, which a
// person may have changed.
func (c *Cluster) ensureCurl() error {
	if _, err := os.Stat(c.f.curl()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := c.WriteCurl()
	return err
}

// WriteCurl writes a configuration for "curl -K" and returns its name. With it, a
// request needs no more than its URL. It signs for the cluster's tenant and sends
// headers ("name: value").
func (c *Cluster) WriteCurl(headers ...string) (string, error) {
	i := c.Info()
	lines := []string{
		"# for curl -K: signs requests to the cluster of this folder",
		"silent", "show-error",
		"cacert = " + strconv.Quote(i.CAFile),
		"aws-sigv4 = " + strconv.Quote("aws:cloud:"+i.Region+":"+i.Service),
		"user = " + strconv.Quote(i.AccessKey+":"+i.SecretKey),
		`write-out = "\n"`,
	}
	for _, h := range headers {
		lines = append(lines, "header = "+strconv.Quote(h))
	}
	if err := os.WriteFile(c.f.curl(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write curl.conf: %w", err)
	}
	return c.f.curl(), nil
}
