package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"facet/cmd/facet/config"
	"facet/internal/must"
)

// setting changes settings of the first node.
func (m *machines) setting(t *testing.T, edit func(map[string]any)) {
	t.Helper()
	name := filepath.Join(m.folder(0), "facet.yaml")
	values := map[string]any{}
	b, err := os.ReadFile(name)
	must.Do(t, err)
	must.Do(t, yaml.Unmarshal(b, &values))
	edit(values)
	must.Do(t, config.Write(name, values))
}

// The cluster's key comes from a credential, as systemd hands it to a service, and the
// key of gossip from a command.
func TestKeysComeFromCredentialAndCommand(t *testing.T) {
	m := some(t, 2)
	m.init(t, alone...)
	credentials := filepath.Join(m.dir, "credentials")
	must.Do(t, os.Rename(filepath.Join(m.folder(0), "keys"), credentials))
	cluster, gossip := filepath.Join(credentials, "cluster.key"), filepath.Join(m.dir, "gossip")
	must.Do(t, os.Rename(filepath.Join(credentials, "gossip.key"), gossip))
	m.setting(t, func(values map[string]any) {
		values["cluster-key"] = "credential:cluster.key"
		delete(values, "gossip-key")
		values["gossip-key-command"] = []string{"/bin/cat", gossip}
	})
	fails := func(want string, args ...string) {
		t.Helper()
		if out, err := command(t, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, want %q", args, err, out, want)
		}
	}
	fails("systemd-run --pty --property=LoadCredentialEncrypted=cluster.key", "cluster", "invite", "--dir", m.folder(0))
	fails("start the node as a service with LoadCredentialEncrypted=cluster.key", "serve", "--config", filepath.Join(m.folder(0), "facet.yaml"))

	t.Setenv(config.CredentialsVariable, credentials)
	m.start(t, 0)
	m.serves(t, 1)
	at := []string{"--profile", m.profile}
	before := m.status(t).Nodes[0].Credentials
	if got := facet(t, append([]string{"cluster", "status"}, at...)...); !strings.Contains(got, "from a systemd credential") || !strings.Contains(got, "from a command") {
		t.Errorf("status: %s", got)
	}
	for _, ring := range []string{"cluster", "gossip"} { // before another node has taken a step
		fails("(facet cluster status names it)", append([]string{"cluster", "rotate", ring}, at...)...)
	}
	if c := m.status(t).Nodes[0].Credentials; c.Cluster[0].ID != before.Cluster[0].ID || len(c.Cluster) != 1 || len(c.Gossip) != 1 {
		t.Errorf("a refused rotation changed keys: %v, %v", c.Cluster, c.Gossip)
	}
	facet(t, append([]string{"tenant", "create", "acme"}, at...)...)

	lines := map[string]string{cluster: strings.Repeat("5a", 32) + "\n", gossip: strings.Repeat("6b", 32) + "\n"}
	for name, line := range lines {
		b, err := os.ReadFile(name)
		must.Do(t, err)
		must.Do(t, os.WriteFile(name, append(b, line...), 0o400))
	}
	m.stop(t, 0)
	m.start(t, 0)
	m.serves(t, 1)
	for _, ring := range []string{"cluster", "gossip"} {
		if out := facet(t, append([]string{"cluster", "rotate", ring}, at...)...); !strings.Contains(out, "is in use on 1 nodes, and no other") {
			t.Errorf("rotate %s: %s", ring, out)
		}
	}
	after := m.status(t).Nodes[0].Credentials
	if len(after.Cluster) != 1 || after.Cluster[0].ID == before.Cluster[0].ID || len(after.Gossip) != 1 || after.Gossip[0].ID == before.Gossip[0].ID {
		t.Errorf("keys are %v and %v, were %v and %v", after.Cluster, after.Gossip, before.Cluster, before.Gossip)
	}
	for name, line := range lines { // now the old keys may go
		must.Do(t, os.WriteFile(name, []byte(line), 0o400))
	}
	m.stop(t, 0)
	m.start(t, 0)
	m.serves(t, 1)
	facet(t, append([]string{"key", "list", "--tenant", "acme"}, at...)...)

	facet(t, append(append([]string{"cluster", "join"}, m.flags(t, 1)...), m.invite(t, 0, 1))...)
	for name, source := range map[string]string{"cluster.key": cluster, "gossip.key": gossip} {
		got, err := os.ReadFile(filepath.Join(m.folder(1), "keys", name))
		if err != nil || string(got) != lines[source] {
			t.Errorf("%s of the machine that joined: %q, %v", name, got, err)
		}
	}
	m.start(t, 1)
	m.serves(t, 2)
}
