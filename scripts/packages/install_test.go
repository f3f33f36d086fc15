package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

// machine is this machine's root file system with a layer of its own above it: packages are installed
// for real, with the machine's own dpkg and users, and nothing of the machine changes.
type machine struct {
	t     *testing.T
	layer string
}

// newMachine skips the test where it may not mount.
func newMachine(t *testing.T) machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("installing packages in a layer above this machine's files needs root")
	}
	m := machine{t, t.TempDir()}
	for _, dir := range []string{"upper", "work", "root"} {
		must.Do(t, os.Mkdir(filepath.Join(m.layer, dir), 0o755))
	}
	if out, err := m.command("true").CombinedOutput(); err != nil {
		t.Skipf("this machine allows no overlay of its root file system: %v\n%s", err, out)
	}
	return m
}

// command returns a command of a shell on the machine. Each one has the mounts to itself; the layer
// stays.
func (m machine) command(script string, args ...string) *exec.Cmd {
	const mount = `set -e; cd "$0"
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" root
mount --rbind /proc root/proc; mount --rbind /dev root/dev; mount -t tmpfs tmpfs root/run; mount -t tmpfs tmpfs root/tmp
script=$1; shift; exec chroot root /bin/sh -ec "$script" sh "$@"`
	return exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "bash", "-c", mount, m.layer, script}, args...)...)
}

func (m machine) run(script string) string {
	m.t.Helper()
	out, err := m.command(script).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// bring copies a file onto the machine.
func (m machine) bring(from, to string) {
	m.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(m.layer, "upper", to)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(m.layer, "upper", to), data, 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// older packs what was built for the release once more, as an older version.
func older(t *testing.T, kind string) string {
	t.Helper()
	b := &builder{root: rootDir, dist: dist(t), version: "0.3.9", out: t.Output(), epoch: time.Unix(1e9, 0).UTC()}
	var err error
	if b.releases, err = readChangelog(rootDir); err != nil {
		t.Fatal(err)
	}
	b.releases[0].Version = b.version
	target := targets[0]
	if runtime.GOARCH != target.arch {
		target = targets[1]
	}
	for _, dir := range []*string{&b.root, &b.dist} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "older."+kind)
	must.Do(t, b.pack(t.Context(), target, kind, file))
	return file
}

// installed is a kind of packages on a machine.
type installed struct {
	kind, install, remove, purge, version string
}

// A package is installed, its node founds a cluster and serves as the service's user; a newer version
// keeps the data and lets the node run; removal and purge leave the data, the user and nothing else.
func TestDebianPackageInstallsAndLeavesData(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("this machine has no dpkg")
	}
	lifeOfPackage(t, installed{
		"deb", "dpkg --force-depends --install /srv/facet.deb", "dpkg --remove facet", "dpkg --purge facet", "dpkg-query --showformat='${Version}' --show facet",
	})
}

// This machine's C libraries are no packages of rpm: their names are checked as text.
func TestRPMInstallsAndLeavesData(t *testing.T) {
	t.Parallel()
	folder := dist(t)
	program, env := tool(t, "rpm")
	path, err := filepath.Abs(program)
	must.Do(t, err)
	rpm := strings.Join(append(env, path), " ") + " --dbpath /var/lib/facet-rpm"
	needs, err := exec.Command("sh", "-c", rpm+" -qp --requires "+filepath.Join(folder, "facet-"+versionOf(t)+"-"+runtime.GOARCH+".rpm")).CombinedOutput()
	if err != nil || !strings.Contains(string(needs), "glibc >= 2.28") || !strings.Contains(string(needs), "libstdc++ >= 8") {
		t.Errorf("the package needs %s (%v)", needs, err)
	}
	lifeOfPackage(t, installed{
		"rpm", rpm + " --nodeps --nosignature --upgrade /srv/facet.rpm", rpm + " --erase facet", "true", rpm + " -q facet",
	})
}

func lifeOfPackage(t *testing.T, p installed) {
	t.Helper()
	newest := filepath.Join(dist(t), "facet-"+versionOf(t)+"-"+runtime.GOARCH+"."+p.kind)
	m := newMachine(t)
	m.bring(older(t, p.kind), "/srv/facet."+p.kind)
	said := m.run(p.install)
	if got := m.run(p.version); !strings.Contains(got, "0.3.9") {
		t.Errorf("installed version: %s", got)
	}
	port := freePorts(t)
	m.run("echo 'a long passphrase' > /tmp/p; chown facet /tmp/p; " + founding(t, said, " --address 127.0.0.1 --port "+port+" --passphrase-file /tmp/p"))
	// The exit status 3 is that of warnings: there is one node only.
	serve := `setpriv --reuid facet --regid facet --clear-groups facet serve --config /var/lib/facet/facet.yaml > /run/log 2>&1 & pid=$!
i=0; until FACET_PROFILE=/var/lib/facet/profile.yaml facet status --json > /run/status 2> /run/error || [ $? = 3 ] || [ $i = 240 ]; do
	kill -0 $pid || break; i=$((i+1)); sleep 0.5; done
kill $pid; wait $pid; cat /run/status; [ -s /run/status ] || cat /run/error /run/log`
	first := m.run(serve)
	m.bring(newest, "/srv/facet."+p.kind)
	if out := m.run(p.install); !strings.Contains(out, "systemctl restart facet") {
		t.Errorf("the upgrade does not say what to do next:\n%s", out)
	}
	if got := m.run(p.version); strings.Contains(got, "0.3.9") || !strings.Contains(got, "0.4.0") {
		t.Errorf("upgraded version: %s", got)
	}
	second := m.run(serve)
	if id := clusterOf(t, first); id == "" || clusterOf(t, second) != id {
		t.Errorf("the cluster before the upgrade:\n%s\nafter it:\n%s", first, second)
	}
	m.run("for f in /opt/facet/THIRD-PARTY.txt /opt/facet/assets/lib/LICENSE /usr/share/doc/facet/copyright /usr/lib/systemd/system/facet.service; do test -s $f; done")
	for _, remove := range []string{p.remove, p.purge} {
		m.run(remove)
		m.run("test ! -e /opt/facet && test ! -e /usr/bin/facet && test ! -e /usr/lib/systemd/system/facet.service && test -e /var/lib/facet/data/node.json && getent passwd facet")
	}
}

// founding returns the commands that the installation says, up to the one that founds a cluster, with its further
// arguments. There is no sudo and no systemd.
func founding(t *testing.T, said, arguments string) (script string) {
	t.Helper()
	for line := range strings.Lines(said) {
		command, ok := strings.CutPrefix(line, "       ")
		if !ok {
			continue
		}
		command, _, _ = strings.Cut(strings.TrimSpace(command), " #")
		script += strings.Replace(command, "sudo -u facet", "setpriv --reuid facet --regid facet --clear-groups", 1)
		if strings.Contains(command, "cluster init") {
			return "set -e\n" + script + arguments
		}
		script += "\n"
	}
	t.Fatalf("the installation does not say how to found a cluster:\n%s", said)
	return ""
}

// clusterOf returns the cluster's id in the output of "facet status --json".
func clusterOf(t *testing.T, status string) string {
	t.Helper()
	at := strings.Index(status, "{")
	if at < 0 {
		t.Fatalf("facet status: %s", status)
	}
	var s struct{ Cluster string }
	if err := json.NewDecoder(strings.NewReader(status[at:])).Decode(&s); err != nil {
		t.Fatal(err, status)
	}
	return s.Cluster
}
