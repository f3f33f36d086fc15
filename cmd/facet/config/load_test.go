package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"facet/internal/must"
	"facet/node/httpapi"
	"facet/node/sigv4"
)

// needed lists the settings without a default.
var needed = []string{
	"FACET_DIR=/d", "FACET_CERTIFICATES=/c", "FACET_CLUSTER_KEY=/k", "FACET_GOSSIP_KEY=/g",
}

func load(t *testing.T, file string, environ []string, args ...string) (Settings, error) {
	t.Helper()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	if file != "" {
		name := filepath.Join(t.TempDir(), "n.yaml")
		must.Do(t, os.WriteFile(name, []byte(file), 0o600))
		args = append(args, "--config", name)
	}
	must.Do(t, f.Parse(args))
	return Load(f, append(environ, needed...))
}

// Defaults come last.
func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	f := func(want, file, environ string, args ...string) {
		t.Helper()
		var env []string
		if environ != "" {
			env = []string{environ}
		}
		s, err := load(t, file, env, args...)
		if err != nil || s.PeerAddress != want {
			t.Errorf("got %q, %v, want %q", s.PeerAddress, err, want)
		}
	}
	const file, environ = "peer-address: file:1\n", "FACET_PEER_ADDRESS=environ:1"
	f(PeerAddressDefault, "", "")
	f("file:1", file, "")
	f("environ:1", file, environ)
	f("flag:1", file, environ, "--peer-address", "flag:1")
	f(PeerAddressDefault, file, environ, "--peer-address", PeerAddressDefault) // set explicitly, though it is the default
}

func TestEveryValueKindComesFromEveryPlace(t *testing.T) {
	t.Parallel()
	want := Settings{Seeds: []string{"a:1", "b:2"}, Shards: 4, Heartbeat: 2 * time.Second, LogLevel: slog.LevelWarn}
	f := func(file string, environ []string, args ...string) {
		t.Helper()
		s, err := load(t, file, environ, args...)
		must.Do(t, err)
		got := Settings{Seeds: s.Seeds, Shards: s.Shards, Heartbeat: s.Heartbeat, LogLevel: s.LogLevel}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	f("seeds: [a:1, b:2]\nshards: 4\nraft-heartbeat: 2s\nlog-level: warn\n", nil)
	f("seeds: 'a:1, b:2'\nshards: '4'\nraft-heartbeat: 2s\nlog-level: WARN\n", nil)
	f("", []string{"FACET_SEEDS=a:1, b:2", "FACET_SHARDS=4", "FACET_RAFT_HEARTBEAT=2s", "FACET_LOG_LEVEL=warn"})
	f("", nil, "--seeds", "a:1,b:2", "--shards", "4", "--raft-heartbeat", "2s", "--log-level", "warn")
}

func TestEverySettingReachesTheNode(t *testing.T) {
	t.Parallel()
	s, err := load(t, "", nil,
		"--name=n", "--peer-address=p:1", "--peer-advertise=pa:2", "--public-address=u:3", "--public-url=https://uu",
		"--admin-address=:4", "--seeds=s", "--bootstrap-expect=3", "--shards=4", "--replicas=2", "--region=r", "--bucket=b", "--job-slots=5", "--memory=6", "--disk-reserve=9",
		"--health=open", "--console=off", "--signature-forms=strict", "--must-sign=x-api-key,accept", "--body-limit=7",
		"--cors=https://o", "--rate-tenant=1.5", "--rate-tenant-burst=6", "--rate-application=7", "--rate-application-burst=8", "--raft-heartbeat=2s", "--raft-election=3s", "--raft-lease=1s", "--raft-stall=4s")
	must.Do(t, err)
	c := s.Node()
	got := []any{
		c.Name, c.Dir, c.PeerAddress, c.PeerAdvertise, c.PublicAddress, c.PublicURL, c.AdminAddress, c.Seeds, c.Expect,
		c.Shards, c.Replicas, c.Certificates, c.ClusterKeyFile, c.GossipKeyFile, c.Bucket, c.JobSlots, c.Memory, c.DiskReserve,
		c.Health, c.Console, c.Canonical, c.MustSign, c.BodyBytes, c.Region, c.CORS, c.TenantRate, c.ApplicationRate,
		c.Timing.Heartbeat, c.Timing.Election, c.Timing.Lease, c.Timing.Stall,
	}
	want := []any{
		"n", "/d", "p:1", "pa:2", "u:3", "https://uu", ":4",
		[]string{"s"},
		3, 4, 2, "/c", "/k", "/g", "b", 5, int64(6 << 20), int64(9 << 20),
		httpapi.HealthOpen, httpapi.ConsoleOff, sigv4.Strict,
		[]string{"x-api-key", "accept"},
		7 << 20, "r",
		[]string{"https://o"},
		httpapi.Rate{PerSecond: 1.5, Burst: 6},
		httpapi.Rate{PerSecond: 7, Burst: 8},
		2 * time.Second, 3 * time.Second, time.Second, 4 * time.Second,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWrongSettingIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := func(want, file string, environ ...string) {
		t.Helper()
		_, err := load(t, file, environ)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, want)
		}
	}
	f("--health is signed or open", "health: yes please\n")
	f("--console is on or off", "console: maybe\n")
	f("--signature-forms is tolerant or strict", "signature-forms: any\n")
	f("--must-sign names headers in lower case", "must-sign: [X-Api-Key]\n")
	f("--must-sign names at most 16", "must-sign: "+strings.Repeat("a,", 17)+"\n")
	f("--body-limit must be 1 to 40 MiB", "body-limit: 0\n")
	f("--body-limit must be 1 to 40 MiB", "", "FACET_BODY_LIMIT=41")
	f(`no setting "peer-addr"`, "peer-addr: a:1\n")
	f(`no setting "config"`, "config: other.yaml\n")
	f(`no setting "raft"`, "raft:\n")
	f("read configuration file n.yaml", "a: [\n")
	f("shards", "shards: many\n")
	f("shards", "", "FACET_SHARDS=many")
	f("debug, info, warn or error", "log-level: loud\n")
	f("--log-format", "log-format: xml\n")
	f("--search-bound is gone", "search-bound: probable\n")
	f("--search-bound is gone", "", "FACET_SEARCH_BOUND=probable")
	f("raft-heartbeat", "raft-heartbeat: soon\n")
	f("--rate-tenant", "rate-tenant: -1\n")
	f("--rate-tenant", "", "FACET_RATE_TENANT=NaN")
	f("--rate-application", "", "FACET_RATE_APPLICATION=Inf")
	f("--rate-tenant-burst", "rate-tenant: 1\nrate-tenant-burst: -1\n")
	f("--rate-application-burst", "rate-application-burst: 5\n")
	f(`no setting "service"`, "service: execute-api\n")
	f("--job-slots", "job-slots: -1\n")
	f("--memory", "memory: -1\n")
	f("there is no configuration file", "", "FACET_CONFIG=/nowhere.yaml")
	f("--peer-address is HOST:PORT", "peer-address: here\n")
	f("--peer-advertise is HOST:PORT", "peer-advertise: n1.example\n")
	for _, every := range []string{"0.0.0.0:7421", "'[::]:7421'", "':7421'", "10.0.0.1:0"} {
		f("set --peer-advertise to the HOST:PORT", "peer-address: "+every+"\n")
		f("is no address that other nodes can call", "peer-advertise: "+every+"\n")
	}
	f("--public-address is HOST:PORT", "", "FACET_PUBLIC_ADDRESS=:70000")
	f("--admin-address is HOST:PORT", "admin-address: '7:7:7'\n")
	f("--public-url is a URL like https://", "public-url: faces.example:7420\n")
	f("--traces-to is a URL like http://", "traces-to: localhost:4318\n")
	f("--cors names at most 64 origins", "cors: "+strings.Repeat("https://a.example,", 65)+"\n")
	f("--cors names origins like", "cors: https://example.org/\n")
	f("--cors names origins like", "cors: '*'\n")
	f("--bootstrap-expect can't be negative", "bootstrap-expect: -1\n")
	f("--shards must be 1 to 64", "shards: 65\n")
	f("--replicas must be 1 to 5", "replicas: 0\n")
	f("--backup-every must be more than 0", "backup-every: -1h\n")
	f("--backup-keep must be at least 1", "backup-keep: 0\n")
	f("lease 2s is longer than heartbeat 1s", "raft-heartbeat: 1s\nraft-lease: 2s\n")
	f("election 1s is shorter than heartbeat 2s", "raft-heartbeat: 2s\nraft-election: 1s\n")
	f("a time of -1s", "raft-stall: -1s\n")
	f("both say where the key is", "cluster-key-command: [/bin/unseal, cluster]\n")
	f("both say where the key is", "gossip-key-command: [/bin/unseal]\n")
}

func TestMissingSettingIsNamed(t *testing.T) {
	t.Parallel()
	for i, n := range needed {
		if strings.HasSuffix(n, "=/k") || strings.HasSuffix(n, "=/g") {
			name, _, _ := strings.Cut(n, "=")
			commands := append(append([]string{}, needed[:i]...), append(needed[i+1:], name+"_COMMAND=/bin/unseal,x")...)
			f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			Flags(f)
			if _, err := Load(f, commands); err != nil {
				t.Errorf("with a command instead of %s: %v", n, err)
			}
		}
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		Flags(f)
		environ := append(append([]string{}, needed[:i]...), needed[i+1:]...)
		name, _, _ := strings.Cut(strings.TrimPrefix(n, "FACET_"), "=")
		flag := "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if _, err := Load(f, environ); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("without %s: got %v, want %s named", n, err, flag)
		}
	}
}

func TestKeyIsCredentialOrCommand(t *testing.T) {
	t.Parallel()
	f := func(want, file string, environ ...string) {
		t.Helper()
		fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		Flags(fs)
		name := filepath.Join(t.TempDir(), "n.yaml")
		must.Do(t, os.WriteFile(name, []byte("dir: /d\ncertificates: /c\n"+file), 0o600))
		must.Do(t, fs.Set(FileFlag, name))
		s, err := Load(fs, environ)
		if strings.HasPrefix(want, "/") {
			c := s.Node()
			if got := c.ClusterKeyFile + " " + c.GossipKeyFile + strings.Join(c.GossipKeyCommand, " ") + " " + c.CredentialsDir; err != nil || got != want {
				t.Errorf("%s: got %s, %v, want %s", file, got, err, want)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
	const both = "cluster-key: credential:a\ngossip-key: credential:b\n"
	f("/cred/a /cred/b /cred", both, "CREDENTIALS_DIRECTORY=/cred")
	f("/k /bin/unseal gossip ", "cluster-key: /k\ngossip-key-command: [/bin/unseal, gossip]\n")
	f("LoadCredentialEncrypted=a", both)
	f("is no name of a credential", "cluster-key: credential:../a\ngossip-key: /g\n", "CREDENTIALS_DIRECTORY=/cred")
	f("needs a program with its whole path", "cluster-key: /k\ngossip-key-command: [unseal]\n")
}

func TestForeignVariableIsNoSetting(t *testing.T) {
	t.Parallel()
	if _, err := load(t, "", []string{"FACET_DEMO=1", "FACET_=x"}); err != nil {
		t.Error(err)
	}
}

func TestWrittenFileIsLoaded(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "n.yaml")
	values := map[string]any{"dir": "/data with space", "seeds": []string{"a:1", "b:2"}, "shards": 4, "name": "on"}
	must.Do(t, Write(name, values))
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	must.Do(t, f.Parse([]string{"--config", name}))
	s, err := Load(f, needed[1:])
	must.Do(t, err)
	if s.Dir != "/data with space" || s.Shards != 4 || s.Name != "on" || !cmp.Equal(s.Seeds, []string{"a:1", "b:2"}) {
		t.Errorf("got %+v", s)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v", info.Mode(), err)
	}
}

func TestSettingsPageListsEverySetting(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/settings.md")
	must.Do(t, err)
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	listed := map[string]bool{FileFlag: true}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for i, part := range strings.Split(cells[1], "`") {
			if i%2 == 0 {
				continue // between two names
			}
			if f.Lookup(part) == nil {
				t.Errorf("the page has a setting %q that does not exist", part)
			}
			listed[part] = true
		}
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if !listed[flag.Name] && !flag.Hidden {
			t.Errorf("the page lacks the setting %q", flag.Name)
		}
	})
}

func FuzzFileNeverPanics(f *testing.F) {
	f.Add("peer-address: a:1\nseeds: [a, b]\n")
	f.Add("a: &a [*a]\n")
	f.Add("raft:\n  heartbeat: 1s\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := load(t, text, nil)
		if err == nil && s.Dir == "" {
			t.Errorf("%q: no error and no directory", text)
		}
	})
}
