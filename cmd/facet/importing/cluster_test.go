package importing

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/router"
)

// photos are all photos of these tests, each of another face.
const photos = "abc"

// desk imports lists into a gallery of its own.
type desk struct {
	*client.Client
	t       *testing.T
	cluster *nodetest.Cluster
	tenant  id.Tenant
	cfg     client.Config
	gallery string // its id
	dir     string
	bucket  string       // of the tenant
	out     bytes.Buffer // of the last import
}

// open returns a desk with a new gallery.
func (d desk) open(size int) *desk {
	d.t.Helper()
	c, err := client.New(d.cfg)
	must.Do(d.t, err)
	d.t.Cleanup(c.Close)
	g, err := c.CreateGallery(d.t.Context(), client.NewGallery{Name: rand.Text(), Size: size, FaceMinimumQualityScore: .45})
	must.Do(d.t, err)
	d.Client, d.gallery, d.cfg.APIKey, d.dir = c.WithAPIKey(g.APIKey), g.ID, g.APIKey, d.t.TempDir()
	for _, name := range photos {
		d.write(string(name)+".jpg", string(name))
	}
	return &d
}

func (d *desk) write(name, text string) {
	must.Do(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

// as returns the desk with an access key of another role.
func (d desk) as(role router.Role) *desk {
	key, err := d.cluster.Nodes[0].Node.Router().CreateAccessKey(d.t.Context(), d.tenant, router.KeyTerms{Role: role, Holder: d.dir})
	must.Do(d.t, err)
	d.cfg.AccessKey, d.cfg.SecretKey = key.ID, key.Secret
	return &d
}

// config returns the configuration of the import of a list with these rows, apart by blanks: external_id,file,expires.
func (d *desk) config(name, rows string) Config {
	d.t.Helper()
	d.write(name, "external_id,file,expires\n"+strings.ReplaceAll(rows, " ", "\n")+"\n")
	source, err := list.Open([]string{filepath.Join(d.dir, name)}, list.Options{})
	must.Do(d.t, err)
	d.t.Cleanup(func() { _ = source.Close() })
	d.out.Reset()
	return Config{Client: d.cfg, Source: source, Known: Skip, Report: filepath.Join(d.dir, name+".report.csv"), Out: &d.out, Words: func(err error) error { return err }}
}

// bring imports and checks what becomes of the rows, then who is in the gallery.
func (d *desk) bring(name, rows string, known Known, want, gallery string) {
	d.t.Helper()
	cfg := d.config(name, rows)
	if cfg.Known = known; strings.HasPrefix(name, "job") {
		cfg.Bucket = d.bucket
	}
	_, err := Run(d.t.Context(), cfg)
	must.Do(d.t, err)
	var got []string
	for _, row := range d.report(cfg.Report) {
		got = append(got, row[2])
		if strings.Contains(row[6], "Idempotency") {
			d.t.Errorf("row %s: %s", row[0], row[6])
		}
	}
	if s := strings.Join(got, " "); s != want {
		d.t.Errorf("%s %q: %s, want %s\n%s", name, rows, s, want, &d.out)
	}
	if s := d.people(); s != gallery {
		d.t.Errorf("%s %q: the gallery has %q, want %q", name, rows, s, gallery)
	}
}

func (d *desk) report(name string) [][]string {
	d.t.Helper()
	text, err := os.ReadFile(name)
	must.Do(d.t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	must.Do(d.t, err)
	return rows[1:]
}

// people returns the subjects: external id, photos that they show, and the years of their events' expiry.
func (d *desk) people() string {
	d.t.Helper()
	events := map[string][]client.Entry{}
	for e, err := range d.AllSubjects(d.t.Context(), client.Ascending) {
		must.Do(d.t, err)
		if e.Status == client.Active {
			events[e.ID] = append(events[e.ID], e)
		}
	}
	var all []string
	for subject, list := range events {
		text := list[0].ExternalID + "="
		for _, name := range photos {
			if v, err := d.Verify(d.t.Context(), subject, []byte(string(name))); err == nil && v.Score == 9999 {
				text += string(name)
			} else if err != nil && !errors.Is(err, client.ErrNotVerified) {
				d.t.Error(err)
			}
		}
		for _, e := range list {
			if !e.Expires.IsZero() {
				text += fmt.Sprint("-", e.Expires.Year())
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func onDesk(t *testing.T, f func(t *testing.T, d desk)) {
	t.Helper()
	bucket := "file://" + t.TempDir() + "?metadata=skip&no_tmp_dir=true"
	nodetest.Run(t, nodetest.Options{Bucket: bucket}, func(t *testing.T, c *nodetest.Cluster) {
		keys, tenant := c.ClientOf("bank")
		cfg := client.Config{CAFile: c.Roots, Dial: c.Dial, AccessKey: keys.Signer.AccessKey, SecretKey: keys.Signer.SecretKey}
		for _, m := range c.Nodes {
			cfg.BaseURLs = append(cfg.BaseURLs, m.URL)
		}
		f(t, desk{t: t, cluster: c, tenant: tenant, cfg: cfg, bucket: bucket + "&prefix=" + tenant.String() + "/"})
	})
}

// What a report says is so: within 24 hours, by the same list and by others.
func TestReportSaysWhatGalleryHas(t *testing.T) {
	onDesk(t, func(t *testing.T, d desk) {
		k := d.open(50) // a, b, a by lists of their own
		k.bring("a.csv", "E,a.jpg, F,c.jpg,", Replace, "registered registered", "E=a F=c")
		k.bring("b.csv", "E,b.jpg,", Replace, "replaced", "E=b F=c")
		k.bring("a.csv", "E,a.jpg, F,c.jpg,", Replace, "replaced registered", "E=a F=c")
		k.bring("c.csv", "E,a.jpg,", Replace, "replaced", "E=a F=c")
		k = d.open(50) // by one report
		k.bring("a.csv", "E,a.jpg,", Replace, "registered", "E=a")
		k.bring("a.csv", "E,b.jpg,", Replace, "replaced", "E=b")
		k.bring("a.csv", "E,a.jpg,", Replace, "replaced", "E=a")
		k.bring("a.csv", "E,b.jpg,", Replace, "replaced", "E=b")

		k = d.open(50) // unregistered, and brought in by jobs
		k.bring("job1.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "=b E=a")
		for _, row := range k.report(filepath.Join(k.dir, "job1.csv.report.csv")) {
			must.Do(t, k.Unregister(t.Context(), row[3]))
		}
		k.bring("job2.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "=b E=a")
		k.bring("job2.csv", "E,a.jpg,2190-01-01 ,b.jpg,", Replace, "replaced registered", "=b E=a-2190")

		k = d.open(50) // unregistered: the list's own run is over, another one registers in truth
		k.bring("a.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "=b E=a")
		for _, row := range k.report(filepath.Join(k.dir, "a.csv.report.csv")) {
			must.Do(t, k.Unregister(t.Context(), row[3]))
		}
		k.bring("a.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "")
		if reason := k.report(filepath.Join(k.dir, "a.csv.report.csv"))[0][6]; !strings.HasPrefix(reason, "by an earlier run on 20") {
			t.Errorf("the report does not say when the row came in: %q", reason)
		}
		k.bring("b.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "=b E=a")

		k = d.open(50) // what is corrected is said, and brought in by replace
		k.bring("a.csv", "E,a.jpg, ,b.jpg,", Skip, "registered registered", "=b E=a")
		k.bring("a.csv", "E,a.jpg,2190-01-01 ,b.jpg,2191-01-01", Skip, "skipped skipped", "=b E=a")
		if !strings.Contains(k.out.String(), "are skipped: 2;") {
			t.Errorf("nothing is said of the changed rows: %s", &k.out)
		}
		k.bring("a.csv", "E,a.jpg,2190-01-01 ,b.jpg,2191-01-01", Replace, "replaced replaced", "=b-2191 E=a-2190")
		k.bring("a.csv", "E,c.jpg, ,b.jpg,2191-01-01", Skip, "skipped replaced", "=b-2191 E=a-2190")
		k.bring("a.csv", "E,c.jpg, ,b.jpg,2191-01-01", Replace, "replaced replaced", "=b-2191 E=c")
		k.bring("a.csv", "E,c.jpg, E,a.jpg, ,b.jpg,", Replace, "replaced added replaced", "=b E=ac")
		k.bring("a.csv", "E,c.jpg, E,b.jpg, ,b.jpg,", Replace, "replaced replaced replaced", "=b E=bc")

		k = d.open(50) // another photo in the same file
		k.bring("a.csv", "E,a.jpg,", Skip, "registered", "E=a")
		k.write("a.jpg", "c")
		k.bring("a.csv", "E,a.jpg,", Skip, "skipped", "E=a")
		k.bring("a.csv", "E,a.jpg,", Replace, "replaced", "E=c")
	})
}

// Without the state, only what has no external id is registered again, and the command says so first.
func TestImportWithoutStateIsAnotherRun(t *testing.T) {
	onDesk(t, func(t *testing.T, d desk) {
		k := d.open(50)
		f := func(want, people string, again bool) {
			t.Helper()
			k.bring("a.csv", "E,a.jpg, ,b.jpg,", Skip, want, people)
			if said := strings.Contains(k.out.String(), "all rows without an external id are registered again (1)"); said != again {
				t.Errorf("said %v, want %v: %s", said, again, &k.out)
			}
		}
		f("registered registered", "=b E=a", false)
		f("registered registered", "=b E=a", false)
		state := filepath.Join(k.dir, "a.csv.report.csv.state")
		must.Do(t, os.Truncate(state, 65)) // as a crash leaves it: the run's identity, without the last rows
		f("registered registered", "=b E=a", false)
		must.Do(t, os.Truncate(state, 65))
		k.bring("a.csv", "E,a.jpg,2190-01-01 ,b.jpg,", Skip, "skipped registered", "=b E=a")
		must.Do(t, os.Remove(state))
		f("skipped registered", "=b =b E=a", true)
	})
}

func TestImportSaysFirstWhatItLacks(t *testing.T) {
	onDesk(t, func(t *testing.T, d desk) {
		k := d.open(3)
		// refused checks the refusal, which comes before the first photo.
		refused := func(k *desk, rows string, known Known, grow bool, want string) {
			t.Helper()
			before := k.people()
			cfg := k.config("list.csv", rows)
			cfg.Known, cfg.Grow = known, grow
			if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q\n%s", rows, err, want, &k.out)
			}
			if files, _ := filepath.Glob(cfg.Report + "*"); len(files) != 0 || k.people() != before {
				t.Errorf("%q: refused, but there are %q, and the gallery has %q", rows, files, k.people())
			}
		}
		k.bring("first.csv", "E,a.jpg, F,b.jpg,", Skip, "registered registered", "E=a F=b")
		four := "E,a.jpg, G,a.jpg, H,b.jpg, ,c.jpg,"
		refused(k, four, Skip, false, "lacks 2 of the 3 places that the rows need: add them with facet gallery grow")
		refused(k, four, Add, false, "lacks 3 of the 4 places")
		enroller := k.as(router.RoleEnrolOnly)
		refused(k.as(router.RoleBiometric), four, Skip, true, "needs the role admin")
		refused(enroller, "G,a.jpg, ,b.jpg, G,c.jpg,", Skip, false, `rows 2 and 4 are photos of one person, "G"`)
		refused(enroller, ",b.jpg, G,c.jpg,", Add, false, `row 3, person "G"`)
		refused(k.as(router.RoleReadOnly), ",b.jpg,", Skip, false, "the role read-only, which registers nobody: use a key with the role biometric or admin")
		enroller.bring("known.csv", "E,c.jpg, H,c.jpg,", Skip, "skipped registered", "E=a F=b H=c")

		check := k.config("list.csv", four)
		check.Report = filepath.Join(k.dir, "list.check.csv")
		if sum, err := Check(t.Context(), check); err != nil || sum.PlacesMissing != 2 || sum.Skipped != 2 {
			t.Errorf("the check says %+v, %v", sum, err)
		}
		check = enroller.config("list.csv", ",b.jpg,")
		if _, err := Check(t.Context(), check); err == nil || !strings.Contains(err.Error(), "enrol-only") {
			t.Errorf("a check with a key that may not: %v", err)
		}
		k.bring("known.csv", "E,c.jpg, H,b.jpg,", Skip, "skipped skipped", "E=a F=b H=c") // the other photo needs no place
		cfg := k.config("list.csv", four)
		cfg.Grow = true
		if _, err := Run(t.Context(), cfg); err != nil || k.people() != "=c E=a F=b G=a H=c" || !strings.Contains(k.out.String(), "has room for 5 faces; it had room for 3") {
			t.Errorf("with room: %v, %s\n%s", err, k.people(), &k.out)
		}
	})
}
