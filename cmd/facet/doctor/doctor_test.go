package doctor

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"facet/cmd/facet/config"
	"facet/cmd/facet/table"
	"facet/engine/models"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/wire"
)

// healthy returns the settings of a stopped node on this machine that lacks nothing, and its authority.
func healthy(t *testing.T) (*config.Settings, *cert.CA) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must.Do(t, err)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	open, err := ports.Take(3)
	must.Do(t, err)
	at := func(i int) string { return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: open[i]}).String() }
	s := &config.Settings{
		Name: "n1", Dir: in("data"), Certificates: dir, ClusterKey: in("cluster.key"), GossipKey: in("gossip.key"),
		PeerAddress: at(0), PublicAddress: at(1), AdminAddress: at(2), Replicas: 3, Shards: 4, Expect: 3,
		Seeds:  []string{at(0), "127.0.0.1:1", "127.0.0.1:2"},
		Models: filepath.Join(root, "assets", "packs"), ONNXRuntime: config.AssetsDefault().ONNXRuntime,
	}
	s.ONNXRuntime = filepath.Join(root, "assets", "lib", filepath.Base(s.ONNXRuntime))
	ca, err := cert.NewCA("test")
	must.Do(t, err)
	who, err := datadir.Identify(s.Dir)
	must.Do(t, err)
	own, err1 := ca.IssueNode(who, nil)
	server, err2 := ca.IssueServer([]string{"127.0.0.1"})
	for _, err := range []error{
		err1, err2, own.Save(in("node.pem"), in("node.key")), server.Save(in("server.pem"), in("server.key")),
		os.WriteFile(in("ca.pem"), ca.CertPEM(), 0o600),
		os.WriteFile(s.ClusterKey, []byte(strings.Repeat("ab", 32)), 0o600), os.WriteFile(s.GossipKey, []byte(strings.Repeat("cd", 32)), 0o600),
	} {
		must.Do(t, err)
	}
	return s, ca
}

// found returns whether a report has a finding of this level and check with a text.
func found(r Report, level Level, check, text string) bool {
	for _, f := range r.Findings {
		if f.Level == level && f.Check == check && strings.Contains(f.Text+": "+f.Do, text) {
			return true
		}
	}
	return false
}

func examine(t *testing.T, s *config.Settings) Report {
	t.Helper()
	return Examine(t.Context(), Config{Settings: s})
}

func shown(t *testing.T, r Report) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Write(&b, r))
	return b.String()
}

// A healthy node has no problem, and the examination leaves its directory as it was.
func TestHealthyNodeHasNoProblem(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	r := examine(t, s)
	for _, f := range r.Findings {
		if f.Level == Problem || f.Level == Warning && f.Check != "time sync" && f.Check != "seeds" && f.Check != "file system" && f.Check != "open files" && f.Check != "fsync" && f.Check != "huge pages" && f.Check != "disk" {
			t.Errorf("%+v", f)
		}
	}
	for _, want := range []string{"settings", "memory", "node.pem", "server.pem", "ca.pem", "node.key", "cluster-key", "models", "next"} {
		if !found(r, OK, want, "") {
			t.Errorf("no %s in\n%s", want, shown(t, r))
		}
	}
	left, err := os.ReadDir(s.Dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the data directory has %v, %v, want its identity alone", left, err)
	}
	for line := range strings.Lines(shown(t, r)) {
		if len([]rune(line)) > table.Columns+1 && !strings.Contains(line, s.Certificates) {
			t.Errorf("%q is too wide", line)
		}
	}
}

func TestEachWrongSettingIsAFinding(t *testing.T) {
	t.Parallel()
	r := Examine(t.Context(), Config{Refused: config.Problems{errors.New("one is wrong"), errors.New("another one is")}})
	if !found(r, Problem, "settings", "one is wrong") || !found(r, Problem, "settings", "another one is") || found(r, Problem, "settings", "settings are wrong") {
		t.Errorf("got\n%s", shown(t, r))
	}
	if r = Examine(t.Context(), Config{Refused: errors.New("there is no configuration file")}); !found(r, Problem, "settings", "there is no configuration file") {
		t.Errorf("got\n%s", shown(t, r))
	}
}

// Each case breaks a healthy node.
func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	f := func(level Level, check, text string, spoil func(s *config.Settings, ca *cert.CA) error) {
		t.Helper()
		s, ca := healthy(t)
		must.Do(t, spoil(s, ca))
		if r := examine(t, s); !found(r, level, check, text) || level == Problem && r.Worst() != Problem {
			t.Errorf("no %s of %s with %q in\n%s", level, check, text, shown(t, r))
		}
	}
	in := func(s *config.Settings, name string) string { return filepath.Join(s.Certificates, name) }
	set := func(change func(s *config.Settings)) func(*config.Settings, *cert.CA) error {
		return func(s *config.Settings, _ *cert.CA) error { change(s); return nil }
	}
	f(Problem, "memory", "lower it", set(func(s *config.Settings) { s.Memory = 1 << 30 }))
	f(Warning, "settings", "workers is 4096", set(func(s *config.Settings) { s.Workers = 4096 }))
	f(Warning, "settings", "job-slots is 200", set(func(s *config.Settings) { s.JobSlots, s.Workers = 200, 1 }))
	f(Warning, "settings", "it bounds nothing", set(func(s *config.Settings) { s.TenantRate, s.ApplicationRate = 5, 6 }))
	f(Warning, "settings", "even number", set(func(s *config.Settings) { s.Replicas = 4 }))
	f(Warning, "settings", "bootstrap-expect is 5", set(func(s *config.Settings) { s.Expect = 5 }))
	f(Warning, "settings", "2 nodes found the cluster", set(func(s *config.Settings) { s.Expect = 2 }))
	f(Problem, "settings", "they can't reach 127.0.0.1", set(func(s *config.Settings) { s.Seeds = []string{"192.0.2.1:7421", "192.0.2.2:7421"} }))
	f(Problem, "seeds", "can't find this one at nowhere..invalid:7421", set(func(s *config.Settings) { s.PeerAdvertise = "nowhere..invalid:7421" }))
	f(Warning, "settings", "keep admin-address on loopback", set(func(s *config.Settings) { s.AdminAddress = "0.0.0.0:0" }))
	f(Problem, "disk", "lower disk-reserve", set(func(s *config.Settings) { s.DiskReserve = 1 << 29 }))
	f(Problem, "models", "", set(func(s *config.Settings) { s.Models = s.Dir }))
	f(Problem, "models", "no ONNX Runtime", set(func(s *config.Settings) { s.ONNXRuntime = s.Dir + "/none.so" }))
	f(Problem, "ports", "not", set(func(s *config.Settings) { s.PublicAddress = "192.0.2.1:7420" }))
	f(Problem, "data", "newer", func(s *config.Settings, _ *cert.CA) error {
		return os.WriteFile(filepath.Join(s.Dir, "level"), []byte("4000\n"), 0o600)
	})
	f(Problem, "data", "facet 0.3.1 reads it", func(s *config.Settings, _ *cert.CA) error {
		return os.WriteFile(filepath.Join(s.Dir, "level"), []byte("3"), 0o600)
	})
	f(Problem, "node.pem", "no such file", func(s *config.Settings, _ *cert.CA) error { return os.Remove(in(s, "node.pem")) })
	f(Problem, "server.pem", "private key does not match", func(s *config.Settings, ca *cert.CA) error {
		other, err := ca.IssueServer([]string{"127.0.0.1"})
		if err == nil {
			err = os.WriteFile(in(s, "server.pem"), other.Cert, 0o600)
		}
		return err
	})
	f(Problem, "server.pem", "does not name the host of public-url, facet.example", set(func(s *config.Settings) { s.PublicURL = "https://facet.example:7420" }))
	f(Problem, "node.pem", "has not signed it", func(s *config.Settings, _ *cert.CA) error {
		other, err := cert.NewCA("test")
		if err == nil {
			err = os.WriteFile(in(s, "ca.pem"), other.CertPEM(), 0o600)
		}
		return err
	})
	f(Problem, "node.pem", "and the data directory of", func(s *config.Settings, ca *cert.CA) error {
		other, err := ca.IssueNode(id.Node{UUID: id.Random([16]byte{1})}, nil)
		if err == nil {
			err = other.Save(in(s, "node.pem"), in(s, "node.key"))
		}
		return err
	})
	f(Warning, "node.key", "chmod 600", func(s *config.Settings, _ *cert.CA) error { return os.Chmod(in(s, "node.key"), 0o644) })
	f(Warning, "cluster-key", "others can read", func(s *config.Settings, _ *cert.CA) error { return os.Chmod(s.ClusterKey, 0o640) })
	f(Problem, "gossip-key", "copy the file from another node", func(s *config.Settings, _ *cert.CA) error {
		return os.WriteFile(s.GossipKey, []byte("no key"), 0o600)
	})
}

func TestTakenPortNamesProcess(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	l, err := net.Listen("tcp", s.PublicAddress)
	must.Do(t, err)
	defer l.Close()
	p, err := net.ListenPacket("udp", s.PeerAddress)
	must.Do(t, err)
	defer p.Close()
	want := "is taken by process"
	if runtime.GOOS != "linux" {
		want = "is taken by"
	}
	r := examine(t, s)
	if !found(r, Problem, "ports", s.PublicAddress+" TCP "+want) || !found(r, Problem, "ports", s.PeerAddress+" UDP "+want) {
		t.Error(shown(t, r))
	}
}

func TestSeedOfOtherClusterIsNamed(t *testing.T) {
	t.Parallel()
	s, ca := healthy(t)
	listen := func(ca *cert.CA) string {
		t.Helper()
		dir := t.TempDir()
		files := cert.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key")}
		if _, err := cert.Ensure(files, ca, func() (cert.Pair, error) { return ca.IssueNode(id.Node{UUID: id.Random([16]byte{2})}, nil) }); err != nil {
			t.Fatal(err)
		}
		source, err := cert.Load(files, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		l, err := tls.Listen("tcp", "127.0.0.1:0", source.PeerConfig())
		must.Do(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.(*tls.Conn).HandshakeContext(t.Context()) // the other end judges
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	other, err := cert.NewCA("other")
	must.Do(t, err)
	friend, stranger := listen(ca), listen(other)
	s.Seeds = []string{friend, stranger, "127.0.0.1:1"}
	r := examine(t, s)
	if !found(r, OK, "seeds", friend+" answers") || !found(r, Problem, "seeds", stranger+" is no node of this cluster") || !found(r, Warning, "seeds", "127.0.0.1:1: does not answer") {
		t.Error(shown(t, r))
	}
}

func TestExpiryIsJudged(t *testing.T) {
	t.Parallel()
	x := &examination{}
	now := time.Now()
	x.expiry("a", now.Add(-time.Hour), now.Add(-time.Minute))
	x.expiry("b", now.Add(-time.Hour), now.Add(20*24*time.Hour))
	x.expiry("c", now.Add(time.Hour), now.Add(90*24*time.Hour))
	x.expiry("d", now.Add(-time.Hour), now.Add(90*24*time.Hour))
	for check, level := range map[string]Level{"a": Problem, "b": Warning, "c": Problem, "d": OK} {
		if !found(x.Report, level, check, "") {
			t.Errorf("%s: want %s in\n%s", check, level, shown(t, x.Report))
		}
	}
}

func TestMemoryFileSystemIsWarned(t *testing.T) {
	t.Parallel()
	if kind, _ := fileSystem("/dev/shm"); kind != "tmpfs" {
		t.Skip("this system has no tmpfs at /dev/shm")
	}
	s, _ := healthy(t)
	s.Dir = "/dev/shm/facet-doctor-none/data"
	if r := examine(t, s); !found(r, Warning, "file system", "is on tmpfs") {
		t.Error(shown(t, r))
	}
}

// The weakest group and the fullest node come first.
func TestNextNamesNearestLimit(t *testing.T) {
	t.Parallel()
	group := func(role string) []wire.GroupStatus { return []wire.GroupStatus{{Group: 1, Role: role, Voters: 3}} }
	until := time.Now().Add(100 * 24 * time.Hour)
	credentials := &wire.Credentials{NodeEnds: until, ServerEnds: until, AuthorityEnds: until}
	x := &examination{live: &cluster{
		status: wire.Status{Nodes: []wire.Member{{Name: "n1", Credentials: credentials, Groups: group("leader")}, {Name: "n2", Groups: group("follower")}, {Name: "n3", Groups: group("follower")}}},
		nodes: []readings{
			{name: "n1", values: map[string]float64{"facet_memory_events_bytes": 9e9, "facet_memory_budget_bytes": 10e9, "facet_group_events": 9e6}},
			{name: "n2", values: map[string]float64{"facet_memory_events_bytes": 1e9, "facet_memory_budget_bytes": 10e9}},
		},
	}}
	x.next()
	text := x.Findings[0].Text
	order := []string{"memory for events of n1: 90 % used, room for about 1.0 million more faces", "ends on", "more deaths of nodes: 1"}
	last := 0
	for _, want := range order {
		at := strings.Index(text, want)
		if at < last {
			t.Errorf("%q does not follow in %q", want, text)
		}
		last = at
	}
	x.live.status.Nodes = x.live.status.Nodes[:2]
	x.Findings = nil
	x.next()
	if !strings.Contains(x.Findings[0].Text, "first: quorum: the cluster survives this many more deaths of nodes: 0") {
		t.Error(x.Findings[0].Text)
	}
}

func TestClocksApartAreProblem(t *testing.T) {
	t.Parallel()
	x := &examination{live: &cluster{nodes: []readings{{name: "n1", off: time.Second}, {name: "n2", off: -7 * time.Minute}}}}
	x.clocks()
	if !found(x.Report, Problem, "clocks", "that of n2 are 7m0s apart") {
		t.Error(shown(t, x.Report))
	}
}

func TestPackOfTestsIsThere(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	if _, err := os.Stat(filepath.Join(s.Models, models.FoundingPack)); err != nil {
		t.Skip("run make setup first")
	}
	if r := examine(t, s); !found(r, OK, "models", "pack "+models.FoundingPack) {
		t.Error(shown(t, r))
	}
}
