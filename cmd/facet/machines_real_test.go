package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"facet/cmd/facet/authority"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/internal/testkit"
	"facet/node/sigv4"
	"facet/node/wire"
)

// machines are nodes in separate processes, each with its own folder, like nodes on
// separate machines. Nothing is shared or copied between the folders.
type machines struct {
	dir     string
	profile string // of the first one
	ports   []int
	process []*exec.Cmd
}

const (
	passphraseOfTests = "a passphrase of tests"
	// callPause is the pause of callers: without one, their handshakes take all processors.
	callPause = 10 * time.Millisecond
)

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asFacet+"=1", "FACET_PROFILE=", authority.PassphraseVariable+"="+passphraseOfTests)
	return cmd
}

// facet runs a command to its end and returns its output.
func facet(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("facet %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// assets returns flags that name the files of set-up: the test binary lies in
// another folder than facet.
func assets(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("../../assets")
	must.Do(t, err)
	return []string{
		"--models", filepath.Join(root, "packs", "default"),
		"--onnxruntime", filepath.Join(root, "lib", filepath.Base(assetsLibrary)),
	}
}

func (m *machines) folder(i int) string { return filepath.Join(m.dir, fmt.Sprintf("n%d", i+1)) }

func (m *machines) authority() string { return authority.Beside(m.folder(0)) }

func (m *machines) flags(t *testing.T, i int) []string {
	t.Helper()
	return append(assets(t), "--dir", m.folder(i), "--name", fmt.Sprintf("n%d", i+1), "--address", "127.0.0.1", "--port", strconv.Itoa(m.ports[i]))
}

// start starts a node as a process that ends with the test.
func (m *machines) start(t *testing.T, i int) {
	t.Helper()
	log, err := os.OpenFile(m.folder(i)+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must.Do(t, err)
	defer log.Close()
	cmd := command(t, "serve", "--config", filepath.Join(m.folder(i), "facet.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	must.Do(t, cmd.Start())
	m.process[i] = cmd
	t.Cleanup(func() {
		_ = m.process[i].Process.Kill() // it may have ended
		_ = m.process[i].Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the last of %s:\n%s", filepath.Base(log.Name()), text[max(0, len(text)-2000):])
		}
	})
}

// stop stops a node in the way of an operator.
func (m *machines) stop(t *testing.T, i int) {
	t.Helper()
	must.Do(t, m.process[i].Process.Signal(syscall.SIGTERM))
	_ = m.process[i].Wait()
}

// until waits until done, which also returns what it saw.
func until(t *testing.T, done func() (saw string, ok bool)) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		saw, ok := done()
		if ok {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("after a minute: %s", saw)
		}
	}
}

func (m *machines) look(t *testing.T) (s wire.Status, err error) {
	t.Helper()
	out, err := command(t, "cluster", "status", "--json", "--profile", m.profile).Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	return s, err
}

func (m *machines) status(t *testing.T) wire.Status {
	t.Helper()
	s, err := m.look(t)
	must.Do(t, err)
	return s
}

// whole waits until this number of nodes is up and there is no warning.
func (m *machines) whole(t *testing.T, nodes int) {
	t.Helper()
	until(t, func() (string, bool) {
		s, err := m.look(t)
		return fmt.Sprintf("%+v, %v", s, err), err == nil && len(s.Nodes) == nodes && len(s.Warnings) == 0
	})
}

// serves waits until this number of nodes have a record in the cluster, and answer.
func (m *machines) serves(t *testing.T, nodes int) {
	t.Helper()
	until(t, func() (string, bool) {
		s, err := m.look(t)
		return fmt.Sprint(s.Nodes, err), err == nil && len(s.Nodes) == nodes && s.Nodes[nodes-1].Answers
	})
}

// trustedByOpenSSL calls all nodes with curl and the authority's file. curl reads
// certificates more strictly than Go. Any answer will do, even a refusal.
func (m *machines) trustedByOpenSSL(t *testing.T, when string) {
	t.Helper()
	for i, port := range m.ports {
		cmd := exec.Command("curl", "--silent", "--show-error", "--cacert", filepath.Join(m.authority(), "ca.pem"),
			"https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))+"/v1.1/health")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: curl and node %d: %v: %s", when, i+1, err, out)
		}
	}
}

// some returns machines with nothing on them.
func some(t *testing.T, n int) *machines {
	t.Helper()
	m := &machines{dir: t.TempDir(), process: make([]*exec.Cmd, n)}
	m.profile = filepath.Join(m.folder(0), "profile.yaml")
	for range n {
		m.ports = append(m.ports, portsInRow(t, 4))
	}
	return m
}

// alone are the flags of a cluster that one machine completes.
var alone = []string{"--shards", "1", "--replicas", "1"}

// init makes the first node.
func (m *machines) init(t *testing.T, shape ...string) {
	t.Helper()
	facet(t, slices.Concat([]string{"cluster", "init"}, shape, m.flags(t, 0))...)
}

// portsInRow returns the first of n ports.
func portsInRow(t *testing.T, n int) int {
	t.Helper()
	port, err := ports.Row(n)
	must.Do(t, err)
	return port
}

// form founds a cluster on the first machine. Two others join it, with one command
// each.
func form(t *testing.T) *machines {
	t.Helper()
	m := some(t, 3)
	m.init(t, "--shards", "2")
	m.start(t, 0)
	token := m.invite(t, 0, 2)
	for i := 1; i < 3; i++ {
		facet(t, append([]string{"cluster", "join", token}, m.flags(t, i)...)...)
		m.start(t, i)
	}
	m.whole(t, 3)
	return m
}

// invite opens an invitation on a machine, which ends with the test, and returns its token.
func (m *machines) invite(t *testing.T, from, nodes int, flags ...string) string {
	t.Helper()
	var out testkit.Buffer
	cmd := command(t, append([]string{"cluster", "invite", "--dir", m.folder(from), "--nodes", strconv.Itoa(nodes)}, flags...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var token string
	until(t, func() (string, bool) {
		token = regexp.MustCompile(`facet-join-\S+`).FindString(out.String())
		return out.String(), token != ""
	})
	return token
}

// callers send signed requests to all nodes, each over a new connection and without
// a retry. They count the answers that are not 200.
type callers struct {
	signer       sigv4.Signer
	roots        func() *x509.CertPool
	asked, wrong atomic.Int64
	first        atomic.Pointer[string] // what went wrong first
	cancel       context.CancelFunc
	work         sync.WaitGroup
}

func (m *machines) call(t *testing.T) *callers {
	t.Helper()
	var keys wire.TenantKeys
	must.Do(t, json.Unmarshal([]byte(facet(t, "tenant", "create", "acme", "--json", "--profile", m.profile)), &keys))
	c := &callers{
		signer: sigv4.Signer{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: keys.AccessKey, SecretKey: keys.SecretKey},
		roots: func() *x509.CertPool { // as a client that is given the file anew after each step
			pool := x509.NewCertPool()
			pem, _ := os.ReadFile(filepath.Join(m.authority(), "ca.pem"))
			pool.AppendCertsFromPEM(pem)
			return pool
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	for _, port := range m.ports {
		c.work.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(callPause) {
				if err := c.ask(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
					c.wrong.Add(1)
					text := fmt.Sprintf("%s port %d: %v", time.Now().Format(time.StampMilli), port, err)
					c.first.CompareAndSwap(nil, &text)
				}
				c.asked.Add(1)
			}
		})
	}
	t.Cleanup(c.stop)
	return c
}

func (c *callers) stop() {
	c.cancel()
	c.work.Wait()
}

func (c *callers) ask(host string) error {
	signed := sigv4.Request{Method: http.MethodGet, Target: "/api/galleries", Headers: []sigv4.Header{{Name: "host", Value: host}}}
	headers, err := c.signer.Sign(signed, sha256.Sum256(nil), time.Now())
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodGet, "https://"+host+signed.Target, nil)
	if err != nil {
		return err
	}
	for _, h := range headers {
		r.Header.Set(h.Name, h.Value)
	}
	r.Header.Set("Accept-Encoding", "identity")
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: c.roots(), MinVersion: tls.VersionTLS12},
	}}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return err
}
