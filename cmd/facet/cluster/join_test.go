package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/config"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/wire"
)

// pack returns a folder with the manifest of the default pack, changed by edit.
func pack(t *testing.T, edit func(map[string]any)) config.Assets {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must.Do(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "assets", "packs", "default", "manifest.json"))
	must.Do(t, err)
	var manifest map[string]any
	must.Do(t, json.Unmarshal(raw, &manifest))
	edit(manifest)
	if raw, err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "manifest.json"), raw, 0o600))
	return config.Assets{Models: dir, ONNXRuntime: filepath.Join(dir, "lib.so")}
}

func same(map[string]any) {}

// port returns the first of four free ports that belong to this process.
func port(t *testing.T) int {
	t.Helper()
	for {
		taken, err := ports.Take(inviteOffset + 1)
		must.Do(t, err)
		if taken[inviteOffset] == taken[0]+inviteOffset {
			return taken[0]
		}
	}
}

func machine(t *testing.T, name string, assets config.Assets) Machine {
	t.Helper()
	return Machine{Dir: filepath.Join(t.TempDir(), name), Name: name, Address: loopback, Port: port(t), Assets: assets}
}

// invited founds a cluster and invites this number of machines to it.
func invited(t *testing.T, nodes int, good time.Duration) (*Inviter, Machine, config.Assets) {
	t.Helper()
	assets := pack(t, same)
	m := machine(t, "n1", assets)
	if _, err := authority.OpenPlain(authority.Beside(m.Dir), "test"); err != nil { // scrypt takes half a second
		t.Fatal(err)
	}
	if _, err := Init(t.Context(), m, Shape{Shards: 2, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	i, err := Invite(t.Context(), Invitation{Dir: m.Dir, Nodes: nodes, For: good})
	must.Do(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := i.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
	return i, m, assets
}

func bytesOf(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	must.Do(t, err)
	return b
}

// The machine has everything that a node needs, and its private keys never left it.
func TestJoinedMachineHasKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	i, first, assets := invited(t, 1, time.Hour)
	m := machine(t, "n2", assets)
	m.Hosts, m.Zone = []string{"n2.example.org"}, "east"
	made, err := Join(t.Context(), m, i.Token())
	must.Do(t, err)
	if all, err := i.Wait(t.Context()); !all || err != nil {
		t.Errorf("the invitation: %t, %v", all, err)
	}
	f, ff := folder(m.Dir), folder(first.Dir)
	for _, pair := range [][2]string{{f.clusterKey(), ff.clusterKey()}, {f.gossipKey(), ff.gossipKey()}, {f.in("certificates", "ca.pem"), ff.in("certificates", "ca.pem")}} {
		if !bytes.Equal(bytesOf(t, pair[0]), bytesOf(t, pair[1])) {
			t.Errorf("%s is not that of the first node", filepath.Base(pair[0]))
		}
	}
	for _, secret := range []string{f.clusterKey(), f.gossipKey(), f.in("certificates", "node.key"), f.in("certificates", "server.key"), f.in("certificates", "status.key"), made.Config} {
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", secret, info.Mode(), err)
		}
	}
	if _, err := os.Stat(authority.Beside(m.Dir)); err == nil {
		t.Error("the authority was copied")
	}
	s, err := config.LoadFile(made.Config, nil)
	must.Do(t, err)
	if s.Name != "n2" || s.Zone != "east" || s.Expect != 0 || len(s.Seeds) != 1 || s.Seeds[0] != first.at(peerOffset) {
		t.Errorf("settings: %+v", s)
	}
	pair, err := tls.LoadX509KeyPair(f.in("certificates", "node.pem"), f.in("certificates", "node.key"))
	must.Do(t, err)
	who, err := datadir.Identify(s.Dir)
	if named, err2 := cert.NodeIn(pair.Leaf); err != nil || err2 != nil || named != who {
		t.Errorf("the certificate names %v, the data directory %v; %v, %v", named, who, err, err2)
	}
	looks, err := tls.LoadX509KeyPair(f.in("certificates", "status.pem"), f.in("certificates", "status.key"))
	must.Do(t, err)
	if named, err := cert.StatusIn(looks.Leaf); err != nil || named != who {
		t.Errorf("the certificate for facet status names %v, %v", named, err)
	}
	server, err := tls.LoadX509KeyPair(f.in("certificates", "server.pem"), f.in("certificates", "server.key"))
	if err != nil || server.Leaf.VerifyHostname("n2.example.org") != nil || server.Leaf.VerifyHostname(loopback) != nil {
		t.Errorf("the certificate for clients: %v, hosts %v", err, cert.Hosts(server.Leaf))
	}
	p, err := admin.ReadProfile(made.Profile)
	must.Do(t, err)
	if _, err := admin.NewClient(p.Target()); err != nil {
		t.Errorf("the profile: %v", err)
	}
}

func TestRefusedMachineLearnsWhy(t *testing.T) {
	t.Parallel()
	i, first, assets := invited(t, 1, time.Hour)
	f := func(want string, m Machine, token Token) {
		t.Helper()
		_, err := Join(t.Context(), m, token)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := os.Stat(folder(m.Dir).settings()); err == nil && want != "there is a node in" {
			t.Errorf("%s: settings were written", want)
		}
	}
	other := i.Token()
	other.Secret[3] ^= 1
	f("the token is not the one of the invitation", machine(t, "n2", assets), other)
	other = i.Token()
	other.Authority[3] ^= 1
	f("does not have the authority that the token names", machine(t, "n2", assets), other)
	other = i.Token()
	other.Expires = time.Now().Add(-5 * time.Minute)
	f("the token expired 5m0s ago by this machine's clock", machine(t, "n2", assets), other)
	other = i.Token()
	other.Addresses = []string{net.JoinHostPort(loopback, "1")}
	f("does not answer: is \"facet cluster invite\" still open", machine(t, "n2", assets), other)

	edited := pack(t, func(m map[string]any) { m["name"] = "another" })
	f("this cluster's model pack is", machine(t, "n2", edited), i.Token())
	f("there is no model pack", machine(t, "n2", config.Assets{Models: t.TempDir()}), i.Token())
	busy := machine(t, "n2", assets)
	l, err := net.Listen("tcp", busy.at(0))
	must.Do(t, err)
	defer l.Close()
	f("another process has the port", busy, i.Token())
	f("there is a node in", first, i.Token())

	if _, err := Join(t.Context(), machine(t, "n2", assets), i.Token()); err != nil {
		t.Fatal(err)
	}
	f("all 1 machines that were invited have joined", machine(t, "n3", assets), i.Token())
}

func TestInvitationEndsByTheInvitersClock(t *testing.T) {
	t.Parallel()
	i, _, assets := invited(t, 1, time.Nanosecond)
	late := i.Token()
	late.Expires = time.Now().Add(time.Hour) // a token that was changed, or a clock that is behind
	if _, err := Join(t.Context(), machine(t, "n2", assets), late); err == nil || !strings.Contains(err.Error(), "the token has expired") {
		t.Errorf("got %v", err)
	}
}

// Clock, name and identity have to fit.
func TestUnfitJoinRequestIsRefused(t *testing.T) {
	t.Parallel()
	i, _, _ := invited(t, 3, time.Hour)
	request, _, err := cert.Request()
	must.Do(t, err)
	token := i.Token()
	n := byte(1)
	valid := func() joinRequest {
		n++
		return joinRequest{
			Secret: token.Secret[:], Node: id.Node{UUID: id.Random([16]byte{n})}, Name: "m" + strconv.Itoa(int(n)), Hosts: []string{"h"},
			Request: request, ServerRequest: request, StatusRequest: request, Pack: i.pack, Time: time.Now(),
		}
	}
	running := id.Node{UUID: id.Random([16]byte{99})}
	i.members = []wire.Member{{ID: running, Name: "taken", Answers: true}}
	f := func(want string, edit func(*joinRequest)) {
		t.Helper()
		q := valid()
		edit(&q)
		_, _, err := i.admit(t.Context(), q)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("clocks of the two machines differ by 7m", func(q *joinRequest) { q.Time = q.Time.Add(-7 * time.Minute) })
	f("clocks of the two machines differ by", func(q *joinRequest) { q.Time = time.Time{} })
	f("has a node called taken", func(q *joinRequest) { q.Name = "taken" })
	f("is taken, and runs in this cluster", func(q *joinRequest) { q.Node = running })
	f("no id or name", func(q *joinRequest) { q.Node = id.Node{} })
	f("not a request for a certificate", func(q *joinRequest) { q.Request = []byte("x") })
	f("it needs a host", func(q *joinRequest) { q.Hosts = nil })
	var twice joinRequest
	f("", func(q *joinRequest) { q.Name = "first"; twice = *q })
	f("", func(q *joinRequest) { *q = twice }) // the answer was lost
	if len(i.joined) != 1 {
		t.Errorf("%d machines have joined", len(i.joined))
	}
	f("called first has just joined", func(q *joinRequest) { q.Name = "first" })
}
