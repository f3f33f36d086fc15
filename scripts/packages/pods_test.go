package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"facet/internal/must"
)

// What the test reads of the rendered chart.
type (
	statefulSet struct {
		Metadata struct{ Name string }
		Spec     struct {
			Replicas int
			Template struct {
				Spec struct {
					SecurityContext            struct{ RunAsUser, RunAsGroup int }
					InitContainers, Containers []podContainer
				}
			}
		}
	}
	podContainer struct {
		Args         []string
		Env          []podVariable
		VolumeMounts []struct {
			Name, MountPath, SubPath string
			ReadOnly                 bool
		}
	}
	podVariable struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef     struct{ FieldPath string }
			SecretKeyRef struct{ Name, Key string }
		}
	}
	serviceMonitor struct {
		Spec struct {
			Endpoints []struct {
				Path, Scheme string
				TLSConfig    struct {
					ServerName string
					CA         struct{ Secret struct{ Name, Key string } }
				}
			}
		}
	}
)

// kubelet runs the pods of a stateful set as processes of this machine, each at an address of its own
// on loopback. It reads what the chart says, and changes only the addresses to listen at: pods have
// all ports to themselves.
type kubelet struct {
	t       *testing.T
	set     statefulSet
	image   string // the root file system
	entry   []string
	env     []string
	dir     string // of volumes
	secrets string // a folder for each secret
}

func (k kubelet) address(pod int) string { return fmt.Sprintf("127.74.%d.%d", os.Getpid()%250, 10+pod) }
func (k kubelet) name(pod int) string    { return fmt.Sprintf("%s-%d", k.set.Metadata.Name, pod) }

// volume returns the folder of a pod's volume. The claimed one outlives the pod.
func (k kubelet) volume(pod int, name string) string {
	if secret := filepath.Join(k.secrets, "facet-"+name); name == "authority" || name == "keys" {
		return secret
	}
	dir := filepath.Join(k.dir, k.name(pod), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		k.t.Fatal(err)
	}
	return dir
}

func (k kubelet) value(pod int, v podVariable) string {
	switch from := v.ValueFrom; {
	case from.FieldRef.FieldPath == "metadata.name":
		return k.name(pod)
	case from.FieldRef.FieldPath == "metadata.labels['topology.kubernetes.io/zone']":
		return fmt.Sprint("zone-", pod)
	case from.SecretKeyRef.Name != "":
		text, err := os.ReadFile(filepath.Join(k.secrets, from.SecretKeyRef.Name, from.SecretKeyRef.Key))
		if err != nil {
			k.t.Fatal(err)
		}
		return string(text)
	case v.Value == "":
		k.t.Fatalf("the test knows no value for the variable %s", v.Name)
	}
	return v.Value
}

// command returns the process of a pod's container. Further arguments replace the container's.
func (k kubelet) command(ctx context.Context, pod int, p podContainer, instead ...string) *exec.Cmd {
	security := k.set.Spec.Template.Spec.SecurityContext
	c := container{root: k.image, user: fmt.Sprintf("%d:%d", security.RunAsUser, security.RunAsGroup), env: k.env}
	c.binds = append(c.binds, bind{from: filepath.Join(k.dir, "hosts"), place: "/etc/hosts", readOnly: true})
	var expand []string
	for _, v := range p.Env {
		value := k.value(pod, v)
		c.env = append(c.env, v.Name+"="+value)
		expand = append(expand, "$("+v.Name+")", value)
	}
	for _, m := range p.VolumeMounts {
		c.binds = append(c.binds, bind{from: filepath.Join(k.volume(pod, m.Name), m.SubPath), place: m.MountPath, readOnly: m.ReadOnly})
		if m.SubPath == "" { // a runtime makes the places of mounts before it makes the root read-only
			if err := os.MkdirAll(filepath.Join(k.image, m.MountPath), 0o755); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	args := instead
	if args == nil {
		for _, a := range p.Args {
			a = strings.NewReplacer(expand...).Replace(a)
			args = append(args, strings.Replace(a, "-address=:", "-address="+k.address(pod)+":", 1))
		}
	}
	return c.command(ctx, k.t, append(append([]string{}, k.entry...), args...)...)
}

// run runs a command to its end and returns its output.
func (k kubelet) run(pod int, p podContainer, instead ...string) string {
	k.t.Helper()
	out, err := k.command(k.t.Context(), pod, p, instead...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("%s, %q: %v\n%s", k.name(pod), instead, err, out)
	}
	return string(out)
}

// start starts a pod, and returns how to kill it.
func (k kubelet) start(pod int) (kill func()) {
	k.t.Helper()
	spec := k.set.Spec.Template.Spec
	for _, name := range []string{"certificates", "tmp"} {
		if err := os.RemoveAll(k.volume(pod, name)); err != nil {
			k.t.Fatal(err)
		}
	}
	for _, p := range spec.InitContainers {
		k.run(pod, p)
	}
	cmd := k.command(context.WithoutCancel(k.t.Context()), pod, spec.Containers[0])
	log, err := os.Create(filepath.Join(k.dir, k.name(pod)+".log"))
	if err != nil {
		k.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	return func() {
		err := cmd.Process.Kill()
		if err == nil {
			_ = cmd.Wait()
		}
		log.Close()
		if text, _ := os.ReadFile(log.Name()); k.t.Failed() {
			k.t.Logf("%s:\n%s", k.name(pod), text)
		}
	}
}

// rendered decodes the chart's object of a kind.
func rendered(t *testing.T, chart []byte, kind string, into any) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(string(chart))); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			t.Fatalf("the chart has no %s", kind)
		}
		must.Do(t, err)
		if object["kind"] != kind {
			continue
		}
		raw, err := json.Marshal(object) // whose decoder ignores the case of names
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		must.Do(t, err)
		return
	}
}

// secretsOf makes the secrets as docs/install.md says.
func (k kubelet) secretsOf(authority string) {
	k.t.Helper()
	c := container{root: k.image, user: "65532:65532", env: append(k.env, "FACET_AUTHORITY_PASSPHRASE=a long passphrase"), binds: []bind{{from: authority, place: "/tmp/authority"}}}
	if out, err := c.command(k.t.Context(), k.t, append(append([]string{}, k.entry...), "certs", "init", "--dir", "/tmp/authority")...).CombinedOutput(); err != nil {
		k.t.Fatalf("certs init: %v\n%s", err, out)
	}
	for secret, names := range map[string][]string{"facet-authority": {"ca.pem", "ca.key"}, "facet-keys": {"cluster.key", "gossip.key"}} {
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(authority, name))
			if err == nil {
				err = os.MkdirAll(filepath.Join(k.secrets, secret), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(k.secrets, secret, name), data, 0o444)
			}
			if err != nil {
				k.t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(k.secrets, "facet-authority", "passphrase"), []byte("a long passphrase"), 0o444); err != nil {
		k.t.Fatal(err)
	}
}

// The chart's three pods, run for real from the image's root file system, found a cluster, know their
// zones, find a face, and go on when one of them is killed and comes back.
func TestChartsPodsFormCluster(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(dist(t), "facet-"+versionOf(t)+"-image.tar")
	needsContainers(t)
	chart := helm(t, "template", "facet", filepath.Join(rootDir, chartFolder), "--namespace", namespace, "--set", "serviceMonitor.enabled=true,settings.shards=4")
	k := kubelet{t: t, dir: t.TempDir(), secrets: t.TempDir()}
	rendered(t, chart, "StatefulSet", &k.set)
	root, config := imageRoot(t, archive, runtime.GOARCH)
	k.image, k.entry, k.env = root, config.Config.Entrypoint, config.Config.Env
	pods := k.set.Spec.Replicas
	hosts := "127.0.0.1 localhost\n"
	for pod := range pods {
		hosts += fmt.Sprintf("%s %s.facet-nodes.%s.svc\n", k.address(pod), k.name(pod), namespace)
	}
	for _, file := range []string{filepath.Join(k.dir, "hosts"), filepath.Join(root, "etc", "hosts")} {
		must.Do(t, os.WriteFile(file, []byte(hosts), 0o644))
	}
	authority := t.TempDir()
	k.secretsOf(authority)
	var kill []func()
	for pod := range pods {
		kill = append(kill, k.start(pod))
	}
	defer func() {
		for _, f := range kill {
			f()
		}
	}()
	all := func() {
		t.Helper()
		for pod := range pods {
			ready(t, "https://"+k.address(pod)+":7422/readyz")
		}
	}
	all()
	k.serves(authority)
	k.scraped(chart, authority)
	kill[1]()
	time.Sleep(time.Second)
	kill[1] = k.start(1)
	all()
}

// serves registers a face through one node and finds it through the service of another.
func (k kubelet) serves(authority string) {
	t := k.t
	t.Helper()
	photos, err := filepath.Abs(filepath.Join(rootDir, "assets", "photos", "face_recognition"))
	must.Do(t, err)
	profiles := t.TempDir()
	client := func(args ...string) string {
		t.Helper()
		c := container{root: k.image, user: "65532:65532", env: append(k.env, "FACET_PROFILE=/run/acme.json"), binds: []bind{
			{from: filepath.Join(k.dir, "hosts"), place: "/etc/hosts", readOnly: true},
			{from: profiles, place: "/run"},
			{from: authority, place: "/certificates", readOnly: true},
			{from: photos, place: "/keys", readOnly: true},
		}}
		out, err := c.command(t.Context(), t, append(append([]string{}, k.entry...), args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("facet %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	operator := []string{"--admin", k.address(0) + ":7422", "--certificates", "/certificates/admin"}
	status := client(append([]string{"status"}, operator...)...)
	for pod := range k.set.Spec.Replicas {
		if !strings.Contains(status, fmt.Sprintf("zone-%d", pod)) {
			t.Errorf("facet status does not show the zone of %s:\n%s", k.name(pod), status)
		}
	}
	client(append([]string{"tenant", "create", "acme", "--save", "/run/acme.json"}, operator...)...)
	client("gallery", "create", "staff")
	client("enrol", "/keys/obama.jpg")
	if found := client("search", "/keys/obama2.jpg"); !strings.Contains(found, "9") {
		t.Errorf("facet search: %s", found)
	}
}

// scraped reads the metrics of every node as the service monitor says.
func (k kubelet) scraped(chart []byte, authority string) {
	t := k.t
	t.Helper()
	var monitor serviceMonitor
	rendered(t, chart, "ServiceMonitor", &monitor)
	end := monitor.Spec.Endpoints[0]
	pem, err := os.ReadFile(filepath.Join(k.secrets, end.TLSConfig.CA.Secret.Name, end.TLSConfig.CA.Secret.Key))
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: end.TLSConfig.ServerName}}}
	for pod := range k.set.Spec.Replicas {
		answer, err := client.Get(end.Scheme + "://" + k.address(pod) + ":7422" + end.Path)
		must.Do(t, err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(text), "facet_build_info") {
			t.Errorf("%s: %d bytes of metrics, %v", k.name(pod), len(text), err)
		}
	}
}
