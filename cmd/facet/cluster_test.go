package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"facet/internal/must"
)

func TestClusterIsFoundInTheGuidesOrder(t *testing.T) {
	dir := t.TempDir()
	profile := filepath.Join(dir, "some.yaml")
	must.Do(t, os.WriteFile(profile, []byte("admin: [127.0.0.1:1]\ncertificates: certs\n"), 0o600))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("FACET_PROFILE", "")
	t.Chdir(dir)
	find := func(args ...string) (string, error) {
		t.Helper()
		var k target
		k.flags(pflag.NewFlagSet("status", pflag.ContinueOnError))
		must.Do(t, k.set.Parse(args))
		where, err := k.find()
		return strings.Join(where.Addresses, ",") + " " + where.Certificates, err
	}
	f := func(want string, args ...string) {
		t.Helper()
		if got, err := find(args...); err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", args, got, err, want)
		}
	}
	fails := func(want string, args ...string) {
		t.Helper()
		if got, err := find(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %q, %v, want %q", args, got, err, want)
		}
	}
	fails("no cluster is named")
	fails("belong together", "--admin", "a:1")
	fails("give one of them", "--profile", profile, "--dir", "x")
	fails("no cluster of facet dev", "--dir", dir+"/none")
	fails("there is no profile", "--profile", "none.yaml")
	inside := "127.0.0.1:1 " + filepath.Join(dir, "certs")
	f(inside, "--profile", profile)
	f("a:1,b:2 c", "--admin", "a:1,b:2", "--certificates", "c")
	own := filepath.Join(dir, "config", "facet")
	must.Do(t, os.MkdirAll(own, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(own, "profile.yaml"), []byte("admin: [own:1]\ncertificates: /c\n"), 0o600))
	f("own:1 /c")
	t.Setenv("FACET_PROFILE", profile)
	f(inside)
	f("a:1 c", "--admin", "a:1", "--certificates", "c")
}
