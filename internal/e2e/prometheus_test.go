//go:build long

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
	"facet/internal/testkit/launch"
	"facet/node/wire"
)

var prometheusProgram = flag.String("prometheus", "", "the program prometheus, for TestPrometheusAnswersEveryPanel (make prometheus)")

// firingFor replaces what the rules say: an alert of a killed node takes five minutes with theirs.
const firingFor = "for: 2s"

// prometheus is a running Prometheus, which reads a cluster.
type prometheus struct {
	url   string
	began time.Time
}

// startPrometheus runs Prometheus with the configuration and the rules of deploy, read every second.
func startPrometheus(t *testing.T, c *served) *prometheus {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join(root, "deploy", "prometheus")
	rules := read(t, filepath.Join(from, "alerts.yml"))
	put(t, dir, "alerts.yml", regexp.MustCompile(`for: \d+[smh]`).ReplaceAll(rules, []byte(firingFor)))
	ca := read(t, c.Certs.CA())
	put(t, dir, "facet-ca.pem", ca)
	text := read(t, filepath.Join(from, "prometheus.yml"))
	var admins []string
	for _, n := range c.nodes {
		admins = append(admins, n.Admin())
	}
	targets := regexp.MustCompile(`targets: \[.*\]`)
	if !targets.Match(text) || !strings.Contains(string(text), "15s") {
		t.Fatalf("prometheus.yml has no targets, or no interval of 15s:\n%s", text)
	}
	text = targets.ReplaceAll(text, []byte("targets: ['"+strings.Join(admins, "', '")+"']"))
	put(t, dir, "prometheus.yml", []byte(strings.ReplaceAll(string(text), "15s", "1s")))
	address := freeAddress(t)
	program, err := launch.Start(exec.Command(*prometheusProgram, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address), starter.Start)
	must.Do(t, err)
	t.Cleanup(func() {
		if program.End(syscall.SIGKILL); t.Failed() {
			t.Logf("prometheus said:\n%s", &program.Out)
		}
	})
	p := &prometheus{url: "http://" + address, began: time.Now()}
	p.wait(t, "all nodes are read over TLS", func() bool {
		up, err := p.ask("query", url.Values{"query": {`sum(up{job="facet"})`}})
		return err == nil && len(up) == 1 && up[0].last() == 3
	})
	return p
}

// wait waits until ok is.
func (p *prometheus) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// get decodes the data of an answer.
func (p *prometheus) get(path string, q url.Values, data any) error {
	got, err := http.Get(p.url + "/api/v1/" + path + "?" + q.Encode())
	if err != nil {
		return err
	}
	defer got.Body.Close()
	var a struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(got.Body).Decode(&a); err != nil {
		return fmt.Errorf("%s: %w", got.Status, err)
	}
	if a.Status != "success" {
		return fmt.Errorf("%s: %s", a.Status, a.Error)
	}
	return json.Unmarshal(a.Data, data)
}

// series is a series of an answer: a vector's has Value, a matrix's Values.
type series struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

func number(sample [2]any) float64 {
	text, _ := sample[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func (s series) last() float64 {
	if len(s.Values) > 0 {
		return number(s.Values[len(s.Values)-1])
	}
	return number(s.Value)
}

// shows reports whether a panel draws anything of s.
func (s series) shows() bool {
	return slices.ContainsFunc(append(s.Values, s.Value), func(v [2]any) bool { return !math.IsNaN(number(v)) })
}

func (p *prometheus) ask(path string, q url.Values) ([]series, error) {
	var data struct{ Result []series }
	err := p.get(path, q, &data)
	return data.Result, err
}

// panel is the part of a dashboard's panel that is asked for.
type panel struct {
	Title   string
	Targets []struct {
		Expr    string
		Instant bool
	}
}

// panels returns the panels of a dashboard of deploy.
func panels(t *testing.T, board string) []panel {
	t.Helper()
	raw := read(t, filepath.Join(root, "deploy", "grafana", board+".json"))
	var b struct{ Panels []panel }
	must.Do(t, json.Unmarshal(raw, &b))
	return b.Panels
}

// answer sends a panel's query as Grafana does for a range from the start of Prometheus to now.
func (p *prometheus) answer(expr string, instant bool) ([]series, error) {
	q := url.Values{"query": {strings.NewReplacer("$__rate_interval", "1m", "$__range", "10m", "$node", ".*").Replace(expr)}}
	if instant {
		return p.ask("query", q)
	}
	q.Set("start", strconv.FormatInt(p.began.Unix(), 10))
	q.Set("end", strconv.FormatInt(time.Now().Unix(), 10))
	q.Set("step", "2")
	return p.ask("query_range", q)
}

// firing returns the alerts that fire, by name, with the instance that each names.
func (p *prometheus) firing(t *testing.T) map[string]string {
	t.Helper()
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	must.Do(t, p.get("alerts", nil, &data))
	names := map[string]string{}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			names[a.Labels["alertname"]] = a.Labels["instance"]
		}
	}
	return names
}

// everyKind makes a little traffic of every kind that the panels show.
func everyKind(t *testing.T, c *served) {
	t.Helper()
	dir := t.TempDir()
	profile := filepath.Join(dir, "officer.json")
	c.facet(t, append([]string{"tenant", "create", "officer", "--save", profile}, c.where()...)...)
	s := &shell{t: t, dir: dir, profile: profile}
	s.run(0, "", "gallery", "create", "staff")
	s.run(0, "", "enrol", photoPath(obama))
	s.run(0, "", "enrol", photoPath(biden), "--expires", "30d")
	s.run(0, "", "enrol", photoPath(collins), "--expires", "8s")

	k := c.client(t, 100)
	for round := range 4 {
		node := round % len(c.nodes)
		one := k.register(t, node, obama)
		k.post(t, node, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).Want(t, 200, nil)
		k.post(t, node, "/v1.1/face/search", map[string]any{"probe": encoded(t, biden)}).Want(t, 404, nil)
		k.post(t, node, "/v1.1/face/verify", map[string]any{"id": one.ID, "probe": encoded(t, obama)}).Want(t, 200, nil)
		k.post(t, node, "/v1.1/subjects", map[string]any{"face": "bm90IGFuIGltYWdl"}).Want(t, 400, nil)
		k.call(t, node, http.MethodDelete, "/v1.1/subjects/"+one.ID, nil).Want(t, 204, nil)
		k.post(t, node, "/v1.1/jobs/bulkregister", map[string]any{"registrations": []any{map[string]any{"filename": "missing.jpg"}}}).Want(t, 200, nil)
		stranger := k.with(wire.KeyPair{AccessKey: k.Signer.AccessKey, SecretKey: "a wrong secret"})
		for range 40 { // the first ones get 403, then the address is slowed
			if a := stranger.get(t, node, "/v1.1/subjects"); a.Status != 403 && a.Status != 429 {
				t.Fatalf("a wrong secret: %d %s", a.Status, a.Body)
			}
		}
		time.Sleep(2 * time.Second) // Prometheus sees an increase between two readings
	}
	c.facet(t, append([]string{"tenant", "set", "bank", "requests=1"}, c.where()...)...)
	for end := time.Now().Add(time.Minute); k.get(t, 0, "/v1.1/subjects").Status != 429; {
		if time.Now().After(end) {
			t.Fatal("no request is over the rate")
		}
	}
	c.facet(t, append([]string{
		"erase", "--tenant", profile, "--photo", photoPath(obama), "--yes", "--now", "--wait=disks", "--receipt", filepath.Join(dir, "obama.receipt"),
	}, c.where()...)...)
}

// A real Prometheus reads a cluster of three nodes with the configuration of deploy. promtool tests
// each rule; this one fires the alerts of a killed node, and has data for every query of the dashboards.
func TestPrometheusAnswersEveryPanel(t *testing.T) {
	if *prometheusProgram == "" {
		t.Skip("-prometheus names no program (make prometheus)")
	}
	c := serve(t, program(), 3, 2, "--backup-to", "file://"+t.TempDir(), "--backup-every", "5s", "--bucket", "file://"+t.TempDir())
	p := startPrometheus(t, c)
	everyKind(t, c)
	ofDeath := []string{"FacetNodeDown", "FacetNodeMissing", "FacetShardsAtRisk", "FacetUnderReplicated"}
	for name := range p.firing(t) {
		if slices.Contains(ofDeath, name) {
			t.Errorf("%s fires while all nodes run", name)
		}
	}
	victim := c.nodes[2]
	victim.Signal(syscall.SIGKILL)
	p.wait(t, "the alerts of a killed node fire", func() bool {
		fires := p.firing(t)
		return !slices.ContainsFunc(ofDeath, func(name string) bool { _, ok := fires[name]; return !ok }) && fires["FacetNodeDown"] == victim.Admin()
	})
	var nodes []string // what the dashboards' variable node offers
	if err := p.get("label/instance/values", url.Values{"match[]": {"facet_ready"}}, &nodes); err != nil || len(nodes) != len(c.nodes) {
		t.Errorf("the nodes to choose from: %v, %v", nodes, err)
	}
	asked := 0
	for _, board := range []string{"operators", "officers"} {
		for _, panel := range panels(t, board) {
			for _, target := range panel.Targets {
				asked++
				got, err := p.answer(target.Expr, target.Instant)
				if err != nil {
					t.Errorf("%s, %s: %s: %v", board, panel.Title, target.Expr, err)
				} else if !slices.ContainsFunc(got, series.shows) {
					t.Errorf("%s, %s: no data for %s", board, panel.Title, target.Expr)
				}
			}
		}
	}
	if asked < 80 {
		t.Errorf("only %d queries were asked", asked)
	}
	t.Logf("%d queries were answered; %s fire", asked, slices.Sorted(maps.Keys(p.firing(t))))
}
