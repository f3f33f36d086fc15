package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"facet/cmd/facet/cli"
	"facet/internal/must"
	"facet/node/wire"
)

func TestTenantSetChecksItsArguments(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		cmd := newTenant()
		cmd.SetArgs(append(args, "--dir", t.TempDir()))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		var asked *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &asked) == (want == "no cluster") {
			t.Errorf("tenant %v: got %v, want %q", args, err, want)
		}
	}
	f("give each quota as NAME=NUMBER", "set", "bank", "galleries")
	f("give each quota as NAME=NUMBER", "set", "bank", "galleries=0")
	f("give each quota as NAME=NUMBER", "set", "bank", "galleries=-1")
	f("give each quota as NAME=NUMBER", "set", "bank", "galleries=many")
	f("give QUOTA=VALUE or --audit", "set", "bank")
	f("give --audit with --audit-days", "set", "bank", "--audit-days", "400")
	f("no cluster", "set", "bank", "--audit", "strict", "--audit-days", "400")
	f("no cluster", "set", "bank", "galleries=3", "jobs=default")
	f("no cluster", "show")
}

func TestQuotasArePrintedAsTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	list := []wire.Tenant{{Name: "bank", Quotas: []wire.Quota{{Name: "galleries", Used: 3, Most: 5, Own: true}, {Name: "writes", Used: 1, Most: 9, Incomplete: true}, {Name: "auditRecords", Used: 7, Most: 1e15, Unlimited: true}}, Audit: wire.Audit{Mode: "strict", Days: 184}}}
	must.Do(t, writeTenants(&b, list))
	want := "TENANT  QUOTA         USED       MOST              SET BY\n" +
		"bank    galleries     3          5                 operator\n" +
		"bank    writes        1 or more  9                 default\n" +
		"bank    auditRecords  7          unlimited         default\n" +
		"bank    audit                    strict, 184 days  \n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
