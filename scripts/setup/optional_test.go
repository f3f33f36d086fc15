package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// The set-up continues without it, unless the set-up was cancelled.
func TestMissingOptionalPackageWarns(t *testing.T) {
	t.Parallel()
	p, archive := npmPackage(t)
	f := func(c clients, reason string) {
		t.Helper()
		for _, optional := range []bool{true, false} {
			var out bytes.Buffer
			s := &setup{assets: t.TempDir(), packages: []*pkg{p}, out: &out}
			wanted := *p
			wanted.Optional = optional
			err := s.bring(t.Context(), c, &wanted, t.TempDir())
			if (err == nil) != optional {
				t.Errorf("optional %v: error is %v", optional, err)
			}
			said := out.String()
			if optional && (!strings.Contains(said, "warning") || !strings.Contains(said, reason) || !strings.Contains(said, "sample 1.0.0")) {
				t.Errorf("it said %q, want a warning with the name and %q", said, reason)
			}
			isEmpty(t, s.assets)
		}
	}
	f(client(t, archive, `echo "no route to registry" >&2; exit 1`), "no route to registry")
	f(client(t, archive, `echo other > a.tgz`), errHash.Error())
	f(clients{}, "npm is missing")
	p.Optional = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &setup{assets: t.TempDir(), packages: []*pkg{p}, out: new(bytes.Buffer)}
	if err := s.bring(ctx, client(t, archive, `cp "$ARCHIVE" a.tgz`), p, t.TempDir()); err == nil {
		t.Error("cancelled: no error")
	}
}
