package main

import (
	"encoding/json"
	"fmt"
	"image/jpeg"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/image/bmp"

	"facet/cmd/facet/dev"
	"facet/internal/must"
	"facet/internal/testkit"
	"facet/node/cert"
)

// configOf returns the configuration that docs/proxy.md shows after a line.
func configOf(t *testing.T, line string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(rootDir, "docs", "proxy.md"))
	must.Do(t, err)
	_, rest, _ := strings.Cut(string(page), line+"\n\n")
	block := ""
	for text := range strings.Lines(rest) {
		if text != "\n" && !strings.HasPrefix(text, "    ") {
			break
		}
		block += text
	}
	if block == "" {
		t.Fatalf("docs/proxy.md shows no configuration after %q", line)
	}
	return block
}

// proxies start with the page's configuration in a newcomer's home.
var proxies = map[string]func(t *testing.T, n newcomer, text func(line string) string) *exec.Cmd{
	"nginx": func(t *testing.T, n newcomer, text func(line string) string) *exec.Cmd {
		config := "user root; pid nginx.pid; error_log stderr; daemon off; master_process off; events {}\nhttp {\naccess_log off;\n" +
			"client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;\n" +
			text("For nginx, in `http { … }`:") + "}\n"
		must.Do(t, os.WriteFile(filepath.Join(n.home, "nginx.conf"), []byte(config), 0o644))
		program, env := tool(t, "nginx")
		cmd := n.command(program, "-p", n.home, "-c", filepath.Join(n.home, "nginx.conf"), "-e", "stderr")
		cmd.Env = append(cmd.Env, env...)
		return cmd
	},
	"haproxy": func(t *testing.T, n newcomer, text func(line string) string) *exec.Cmd {
		must.Do(t, os.WriteFile(filepath.Join(n.home, "haproxy.cfg"), []byte(text("The same for HAProxy:")), 0o644))
		program, env := tool(t, "haproxy")
		cmd := n.command(program, "-db", "-f", filepath.Join(n.home, "haproxy.cfg"))
		cmd.Env = append(cmd.Env, env...)
		return cmd
	},
}

// proxy runs a proxy in front of a cluster, and returns its address and the file of its authority.
func (n newcomer) proxy(t *testing.T, name string, info dev.Info) (base, ca string) {
	t.Helper()
	authority, err := cert.NewCA("proxy")
	must.Do(t, err)
	pair, err := authority.IssueServer([]string{"127.0.0.1"})
	must.Do(t, err)
	nodes, err := os.ReadFile(info.CAFile)
	must.Do(t, err)
	ca = filepath.Join(n.home, "proxy-ca.pem")
	for file, content := range map[string][]byte{
		"facet-ca.pem": nodes, "faces.pem": append(pair.Cert, pair.Key...), "faces.key": pair.Key, "proxy-ca.pem": authority.CertPEM(),
	} {
		must.Do(t, os.WriteFile(filepath.Join(n.home, file), content, 0o644))
	}
	address := "127.0.0.1:" + freePorts(t)
	cmd := proxies[name](t, n, func(line string) string {
		text := strings.NewReplacer("listen 443", "listen "+address, "bind :443", "bind "+address, "/etc/"+name, n.home).Replace(configOf(t, line))
		for i, node := range info.Nodes {
			text = strings.ReplaceAll(text, fmt.Sprintf("10.0.0.%d:7420", i+1), strings.TrimPrefix(node.URL, "https://"))
		}
		return text
	})
	var said testkit.Buffer
	cmd.Stderr = &said
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); t.Failed() {
			t.Logf("%s: %v\n%s", name, err, &said)
		}
	})
	ready(t, "https://"+address+"/console")
	if err := os.Chmod(filepath.Join(n.home, "tmp"), 0o500); err != nil && name == "nginx" { // where it would store a photo
		t.Fatal(err)
	}
	return "https://" + address, ca
}

// The clients work through proxies as docs/proxy.md sets them up: with large photos, with targets that
// a proxy might change, and when a node has died. No photo comes to a proxy's disk.
func TestProxiesPassRequests(t *testing.T) {
	t.Parallel()
	dir := dist(t)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passesRequests(t, name, dir)
		})
	}
}

func passesRequests(t *testing.T, proxy, dir string) {
	n := newNewcomer(t, "venv/bin")
	n.pip(t, dir)
	n.dev(t)
	info, err := dev.ReadInfo(filepath.Join(n.home, "dev"))
	must.Do(t, err)
	base, ca := n.proxy(t, proxy, info)
	authority, err := os.ReadFile(ca)
	must.Do(t, err)
	profile, err := json.Marshal(map[string]any{"base_urls": []string{base}, "ca": string(authority), "access_key": info.AccessKey, "secret_key": info.SecretKey})
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join(n.home, "proxy.json"), profile, 0o600))
	facet := func(args ...string) string {
		t.Helper()
		return n.run(t, n.facet(), append(args, "--profile", "proxy.json")...)
	}
	facet("gallery", "create", "staff", "--size", "5000")
	large(t, filepath.Join(n.home, "obama.jpg"), filepath.Join(n.home, "large.bmp"))
	facet("enrol", "large.bmp")
	if out := facet("search", "obama.jpg"); !strings.Contains(out, "9999") {
		t.Errorf("the photo in another format is not found as itself:\n%s", out)
	}

	client, err := testkit.New(ca, testkit.Signer(info.AccessKey, info.SecretKey), nil)
	must.Do(t, err)
	defer client.Close()
	for _, target := range []string{"/api/galleries/a%2Fb", "/api/galleries/a%20b+c", "/api/galleries/%C3%BC//x", "/api/galleries/x/../y", "/api/galleries/x?b=2%2B2&a=x%20y+z&a0"} {
		if a := client.Call(t, base, http.MethodGet, target, nil); a.Status == http.StatusForbidden {
			t.Errorf("GET %s: %d %s: its signature does not hold behind the proxy", target, a.Status, a.Body)
		}
	}
	tooLong := make([]byte, 21<<20)
	if a := client.Call(t, base, http.MethodPost, "/api/galleries", tooLong); a.Status != http.StatusRequestEntityTooLarge || !json.Valid(a.Body) {
		t.Errorf("a body of 21 MiB: %d %.200s, want facet's own 413", a.Status, a.Body)
	}
	must.Do(t, syscall.Kill(info.Nodes[1].PID, syscall.SIGKILL))
	for range 6 {
		facet("search", "obama2.jpg")
	}
}

// large writes a photo as a bitmap, which nginx would refuse or store by its defaults.
func large(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	must.Do(t, err)
	defer f.Close()
	photo, err := jpeg.Decode(f)
	must.Do(t, err)
	out, err := os.Create(to)
	must.Do(t, err)
	must.Do(t, bmp.Encode(out, photo))
	must.Do(t, out.Close())
	if info, err := os.Stat(to); err != nil || info.Size() < 2<<20 {
		t.Fatalf("%s is not large: %v, %v", to, info, err)
	}
}
