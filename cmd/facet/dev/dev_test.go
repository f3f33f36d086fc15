package dev

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"facet/cmd/facet/config"
	"facet/cmd/facet/table"
	"facet/internal/id"
	"facet/internal/must"
)

// founded writes a folder like a first start, but starts no node.
func founded(t *testing.T, cfg Config) (*Cluster, folder) {
	t.Helper()
	f := folder(filepath.Join(t.TempDir(), "cluster"))
	must.Do(t, os.MkdirAll(string(f), 0o700))
	cfg.Dir, cfg.Out = string(f), io.Discard
	c := &Cluster{cfg: cfg, f: f}
	must.Do(t, c.prepare())
	return c, f
}

func TestClusterKeepsItsShapeAndPorts(t *testing.T) {
	t.Parallel()
	first, f := founded(t, Config{Nodes: 2, Shards: 3})
	again := &Cluster{cfg: first.cfg, f: f}
	again.cfg.Nodes, again.cfg.Shards = 0, 0
	must.Do(t, again.prepare())
	if d := cmp.Diff(first.state, again.state); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(first.ids, again.ids); d != "" {
		t.Error(d)
	}
}

// The folder has a cluster already.
func TestAnotherShapeIsRefused(t *testing.T) {
	t.Parallel()
	_, f := founded(t, Config{Nodes: 2, Shards: 3})
	refuse := func(cfg Config, want string) {
		t.Helper()
		cfg.Dir, cfg.Out = string(f), io.Discard
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refuse(Config{Nodes: 3}, "has 2 nodes")
	refuse(Config{Shards: 4}, "has 3 shards")
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	must.Do(t, os.WriteFile(precious, []byte("x"), 0o600))
	if _, err := Open(t.Context(), Config{Dir: dir, Out: io.Discard}); !errors.Is(err, ErrNoCluster) {
		t.Errorf("open: got %v", err)
	}
	if err := Remove(dir); !errors.Is(err, ErrNoCluster) {
		t.Errorf("remove: got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// The other ports stay.
func TestPortInUseIsReplaced(t *testing.T) {
	t.Parallel()
	c, _ := founded(t, Config{Nodes: 2})
	before := append([]nodeState{}, c.state.Nodes...)
	l, err := net.Listen("tcp", before[1].Public)
	must.Do(t, err)
	defer l.Close()
	p, err := net.ListenPacket("udp", before[0].Peer)
	must.Do(t, err)
	defer p.Close()
	replaced, err := settlePorts(c.state)
	if err != nil || len(replaced) != 2 {
		t.Fatalf("replaced %q, %v, want 2", replaced, err)
	}
	after := c.state.Nodes
	if after[1].Public == before[1].Public || after[0].Peer == before[0].Peer {
		t.Errorf("taken ports are kept: %v", after)
	}
	after[1].Public, after[0].Peer = before[1].Public, before[0].Peer
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("other ports moved: %s", d)
	}
}

func TestEveryNodesConfigurationLoads(t *testing.T) {
	t.Parallel()
	c, f := founded(t, Config{Nodes: 3, Assets: config.Assets{Models: "/m", ONNXRuntime: "/o"}})
	dirs := map[string]bool{}
	for i, n := range c.state.Nodes {
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		config.Flags(flags)
		args := c.command(n.Name)[2:]
		must.Do(t, flags.Parse(args))
		s, err := config.Load(flags, nil)
		must.Do(t, err)
		got := []any{s.Name, s.Dir, s.PeerAddress, s.PublicAddress, s.AdminAddress, len(s.Seeds), s.Expect, s.Shards, s.Replicas, s.Models, s.ONNXRuntime}
		want := []any{nodeName(i), f.data(n.Name), n.Peer, n.Public, n.Admin, 3, 3, ShardsDefault, replicas, "/m", "/o"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		for _, key := range []string{s.ClusterKey, s.GossipKey} {
			if strings.HasPrefix(key, s.Dir+"/") {
				t.Errorf("%s lies in the data directory", key)
			}
			if _, err := os.Stat(key); err != nil {
				t.Error(err)
			}
		}
		dirs[s.Dir] = true
	}
	if len(dirs) != 3 {
		t.Errorf("nodes share directories: %v", dirs)
	}
}

func TestDevJSONHasTheFieldsOfClients(t *testing.T) {
	t.Parallel()
	c, f := founded(t, Config{Nodes: 2, Binary: "/bin/facet"})
	c.state.Tenant = &tenant{Name: "dev", AccessKey: "A", SecretKey: "S"}
	c.members[1].pid = 42
	must.Do(t, c.writeInfo())
	info, err := os.Stat(f.info())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode: %v, %v", info, err)
	}
	got, err := ReadInfo(string(f))
	must.Do(t, err)
	url := "https://" + c.state.Nodes[1].Public
	want := NodeInfo{
		ID: c.ids["n2"], PID: 42, URL: url, Dir: f.data("n2"), Cmd: []string{"/bin/facet", "serve", "--config", f.config("n2")},
		Name: "n2", Admin: c.state.Nodes[1].Admin, Log: f.log("n2"),
	}
	if d := cmp.Diff(want, got.Nodes[1]); d != "" {
		t.Error(d)
	}
	if got.BaseURLs[1] != url || got.PortalURLs[1] != url || got.AccessKey != "A" || got.SecretKey != "S" ||
		got.Region != "ap-southeast-2" || got.Service != "execute-api" || got.Nodes[0].ID == (id.Node{}) {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(got.CAFile); err != nil || !filepath.IsAbs(got.CAFile) {
		t.Errorf("ca_file %q: %v", got.CAFile, err)
	}
}

func TestOperatorsFindTheNodesOfAFolder(t *testing.T) {
	t.Parallel()
	c, f := founded(t, Config{Nodes: 2})
	got, err := Admin(string(f))
	must.Do(t, err)
	if d := cmp.Diff([]string{c.state.Nodes[0].Admin, c.state.Nodes[1].Admin}, got.Addresses); d != "" {
		t.Error(d)
	}
	if _, err := Admin(t.TempDir()); !errors.Is(err, ErrNoCluster) {
		t.Errorf("empty folder: got %v", err)
	}
}

func TestRemoveTakesOnlyTheCluster(t *testing.T) {
	t.Parallel()
	_, f := founded(t, Config{Nodes: 2})
	mine := f.path("notes.txt")
	must.Do(t, os.WriteFile(mine, []byte("x"), 0o600))
	must.Do(t, Remove(string(f)))
	entries, err := os.ReadDir(string(f))
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes.txt" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// The end of the log can still be read.
func TestLongLogIsMovedAside(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "n1.log")
	must.Do(t, os.WriteFile(name, append(make([]byte, logBytesMax), []byte("the end")...), 0o600))
	if got := tail(name); !strings.HasSuffix(got, "the end") || len(got) > 2000 {
		t.Errorf("tail: got %d bytes", len(got))
	}
	l, err := openLog(name)
	must.Do(t, err)
	defer l.Close()
	if info, err := l.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("new log: %v, %v", info.Size(), err)
	}
	if info, err := os.Stat(name + ".1"); err != nil || info.Size() != logBytesMax+7 {
		t.Errorf("old log: %v", err)
	}
}

func FuzzStateNeverPanics(f *testing.F) {
	f.Add(`{"format":1,"shards":4,"nodes":[{"name":"n1"}]}`)
	f.Add(`{"format":1,"nodes":[{"name":"../x"}]}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := folder(t.TempDir())
		must.Do(t, os.WriteFile(dir.state(), []byte(text), 0o600))
		s, err := readState(dir)
		if err == nil && (len(s.Nodes) == 0 || s.Nodes[0].Name != "n1") {
			t.Errorf("%q: got %+v", text, s)
		}
	})
}

func TestOneNodeIsSingular(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 node", 3: "3 nodes"} {
		if got := nodes(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDiskAdviceNamesWhatIsNeeded(t *testing.T) {
	t.Parallel()
	got := diskAdvice("./dev", 700<<20, 1<<30)
	for _, want := range []string{"./dev is nearly full, with 700 MiB free", "refuse registrations", "until 1024 MiB are free", "--dir"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	for line := range strings.Lines(got) {
		if len(strings.TrimSuffix(line, "\n")) > table.Columns {
			t.Errorf("too wide: %q", line)
		}
	}
}
