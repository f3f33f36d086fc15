package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"facet/cmd/facet/cli"
)

func TestNewKeyNeedsRole(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		cmd := newKey()
		cmd.SetArgs(append(args, "--dir", t.TempDir()))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("key %v: got %v, want %q", args, err, want)
		}
		var asked *cli.UsageError
		if err != nil && want != "no cluster" && !errors.As(err, &asked) {
			t.Errorf("key %v: %v is no error of usage", args, err)
		}
	}
	f("--role is needed: admin (everything), biometric (all but galleries and applications), read-only, enrol-only (register), search-only (search), reviewer (verdicts on doubtful matches) or auditor (the audit log)", "create", "--tenant", "x")
	f("--tenant is needed", "create")
	f("admin, biometric, read-only, enrol-only, search-only", "create", "--tenant", "x", "--role", "king")
	f("no cluster", "create", "--tenant", "x", "--role", "read-only")
	f("no cluster", "rotate", "--tenant", "x")
}
