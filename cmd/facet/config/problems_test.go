package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"facet/internal/must"
)

// wrong loads settings from a file, variables and flags, and returns the lines of the error.
func wrong(t *testing.T, file string, environ []string, args ...string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "facet.yaml")
	must.Do(t, os.WriteFile(name, []byte(file), 0o600))
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	must.Do(t, f.Parse(append(args, "--config", name)))
	_, err := Load(f, environ)
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n  ")
}

// whole are settings without a problem.
const whole = "dir: d\ncertificates: c\ncluster-key: k\ngossip-key: g\n"

func TestAllWrongSettingsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	got := wrong(t, "dirr: x\nworkers: abc\nlog-lefel: debug\nplanet: mars\nhealth: maybe\n", []string{"FACET_MEMORY=-1"}, "--traces-ratio=2", "--body-limit=99")
	want := []string{
		"12 settings are wrong:",
		`configuration file facet.yaml: there is no setting "dirr"; the nearest is "dir"`,
		`configuration file facet.yaml: there is no setting "log-lefel"; the nearest is "log-level"`,
		`configuration file facet.yaml: there is no setting "planet"`,
		"bad setting: 'workers' cannot parse value as 'int': strconv.ParseInt: invalid syntax",
		"--dir is needed: the node's data directory",
		"--certificates is needed: the folder with the node's certificates (facet certs issue makes one)",
		"--cluster-key is needed: a file (facet certs init makes one) or credential:NAME; or --cluster-key-command",
		"--gossip-key is needed: a file (facet certs init makes one) or credential:NAME; or --gossip-key-command",
		`--health is signed or open, not "maybe"`,
		"--body-limit must be 1 to 40 MiB",
		"--memory must be 0 to 1073741824 MiB",
		"--traces-ratio is a share of requests, 0 to 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A setting that can't be read is zero then, which is no problem of its own.
func TestUnreadableSettingIsNamedOnce(t *testing.T) {
	t.Parallel()
	got := wrong(t, whole+"body-limit: much\n", nil)
	if len(got) != 1 || !strings.Contains(got[0], "body-limit") {
		t.Errorf("got %q", got)
	}
}

func TestUnknownFlagsHaveNearestNames(t *testing.T) {
	t.Parallel()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	err := UnknownFlags(f, []string{"--dir", "x", "--peer-addresz=a", "--wokers", "3", "--xyzzy", "--", "--other"})
	want := "3 settings are wrong:\n  unknown flag: --peer-addresz; the nearest is --peer-address\n" +
		"  unknown flag: --wokers; the nearest is --workers\n  unknown flag: --xyzzy"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestMisspelledVariableIsDoubted(t *testing.T) {
	t.Parallel()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	got := doubts(f, []string{"FACET_LOGLEVEL=debug", "FACET_DIR=x", "FACET_PROFILE=p", "FACET_KERNEL=avx2", "LOG_LEVEL=debug"})
	want := []string{"the variable FACET_LOGLEVEL is no setting; the nearest is FACET_LOG_LEVEL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUsualSearchBoundIsDoubted(t *testing.T) {
	t.Parallel()
	f := func(want []string, file string, environ []string, args ...string) {
		t.Helper()
		s, err := load(t, file, environ, args...)
		if diff := cmp.Diff(want, s.Doubts); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	gone := []string{searchBoundGone}
	f(nil, "zone: a\n", nil)
	f(gone, "search-bound: certified\n", nil)
	f(gone, "", []string{"FACET_SEARCH_BOUND=certified"})
	f(gone, "", nil, "--search-bound=certified")
}

func TestOverTakesLiveSettingsOnly(t *testing.T) {
	t.Parallel()
	s := Settings{Dir: "a", Memory: 1, RebuildAfter: time.Minute, CORS: []string{"x"}}
	next := Settings{Dir: "b", Memory: 2, RebuildAfter: time.Minute, CORS: []string{"y"}, TenantRate: 7}
	now, changed, waiting := s.Over(next)
	slices.Sort(changed)
	if diff := cmp.Diff([]string{"cors", "memory", "rate-tenant"}, changed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"dir"}, waiting); diff != "" {
		t.Error(diff)
	}
	if now.Dir != "a" || now.Memory != 2 || now.TenantRate != 7 || now.CORS[0] != "y" || s.Memory != 1 {
		t.Errorf("got %+v", now)
	}
}

// Every live setting is one, and docs/settings.md marks it.
func TestLiveSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "settings.md"))
	must.Do(t, err)
	var marked []string
	for line := range strings.Lines(string(page)) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if names, live := strings.CutSuffix(cell, " ↻"); live {
			for name := range strings.SplitSeq(names, ", ") {
				marked = append(marked, strings.Trim(name, "`"))
			}
		}
	}
	live := slices.Sorted(slices.Values(Live))
	slices.Sort(marked)
	if diff := cmp.Diff(live, marked); diff != "" {
		t.Error(diff)
	}
	for _, name := range Live {
		if f.Lookup(name) == nil {
			t.Errorf("there is no setting %s", name)
		}
	}
}
