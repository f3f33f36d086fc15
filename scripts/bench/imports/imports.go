package imports

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing"
	"facet/cmd/facet/importing/list"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	nodes   = 3
	goal    = .95
	gallery = 1_000_000
	// atOncePerNode is how many requests the load generator has under way, as many as an
	// import starts with.
	atOncePerNode = 4
)

// names are photos with one face each.
var names = []string{"face_recognition/obama.jpg", "face_recognition/obama2.jpg", "face_recognition/biden.jpg", "scikit-image/astronaut.png"}

// bench is one run.
type bench struct {
	phase  time.Duration
	rounds int

	files   cluster.Files
	dir     string // of lists
	cluster *cluster.Cluster
	client  *https.Client
	sources []*load.Source
	photos  []https.Operation
	bytes   [][]byte // of the photos
	lists   int
}

// outcome is the sum of the rounds of one client.
type outcome struct {
	done               int
	elapsed, cpu, used time.Duration // by the clock, of the nodes, of the client
}

// rate returns the registrations in a second of the clock, most those with which nodes
// and client would fill the cores. The second does not depend on what else ran.
func (o outcome) rate() float64 { return float64(o.done) / o.elapsed.Seconds() }

func (o outcome) most() float64 {
	return float64(runtime.NumCPU()*o.done) / (o.cpu + o.used).Seconds()
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	var b bench
	flags.DurationVar(&b.phase, "phase", 10*time.Second, "time for each client in a round")
	flags.IntVar(&b.rounds, "rounds", 3, "rounds")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	b.files = files
	if b.dir, err = os.MkdirTemp("", "bench-import"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.cluster, err = files.Start(ctx, cluster.Shape{Nodes: nodes}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cluster.Close()) }()
	if err := b.prepare(); err != nil {
		return err
	}
	var generated, direct, jobs outcome
	if _, err := b.generate(ctx, &outcome{}); err != nil { // warm
		return err
	}
	for range b.rounds {
		rows, err := b.generate(ctx, &generated)
		if err == nil {
			err = b.bringIn(ctx, &direct, rows, "")
		}
		if err == nil {
			err = b.bringIn(ctx, &jobs, rows, "file://"+(&url.URL{Path: b.cluster.Info().BucketDir}).EscapedPath()+"?metadata=skip&no_tmp_dir=true")
		}
		if err != nil {
			return err
		}
	}
	clock := func(o outcome) string {
		return fmt.Sprintf("%.1f/s by the clock; client %.1f ms a photo", o.rate(), o.used.Seconds()*1e3/float64(o.done))
	}
	title := fmt.Sprintf("Registrations through %d nodes on %s, %d cores; nodes and client counted", nodes, machine.Processor(), runtime.NumCPU())
	return table.Print(out, title, []table.Row{
		{What: "load generator", Value: generated.most(), Unit: "/s", About: clock(generated)},
		{What: "facet import", Value: direct.most(), Unit: "/s", About: clock(direct)},
		{What: "facet import --bucket", Value: jobs.most(), Unit: "/s", About: clock(jobs)},
		{What: "import / generator", Value: direct.most() / generated.most(), Goal: goal},
		{What: "import / generator by the clock", Value: direct.rate() / generated.rate(), Goal: goal},
		{What: "import --bucket / generator", Value: jobs.most() / generated.most()},
	})
}

// prepare makes the gallery, the requests of the load generator, and the photos of lists.
func (b *bench) prepare() (err error) {
	if b.client, err = https.New(b.cluster.Info()); err != nil {
		return err
	}
	if err := b.client.Found("bench", gallery); err != nil {
		return err
	}
	for _, url := range b.cluster.Info().BaseURLs {
		b.sources = append(b.sources, load.NewSource(b.client, url))
	}
	for _, name := range names {
		photo, err := os.ReadFile(filepath.Join(b.files.Assets, "photos", filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		o, err1 := https.NewOperation("/v1.1/subjects", map[string]any{"face": base64.StdEncoding.EncodeToString(photo)})
		if err1 != nil {
			return err1
		}
		b.photos, b.bytes = append(b.photos, o), append(b.bytes, photo)
	}
	return nil
}

// generate registers photos for the time of a phase, and returns how many.
func (b *bench) generate(ctx context.Context, sum *outcome) (rows int, err error) {
	var r load.Result
	err = b.measure(sum, func() (err error) {
		r, err = load.Closed(ctx, nodes*atOncePerNode, b.phase, func(worker, i int) error {
			o := b.photos[(worker+i)%len(b.photos)]
			a, _, err := b.sources[(worker+i)%nodes].Do(o)
			if err == nil && !a.Good() {
				err = &https.StatusError{Target: o.Target, Answer: a}
			}
			return err
		})
		return err
	})
	sum.done += len(r.Times)
	return len(r.Times), err
}

// list writes a list with this many rows. Its photos differ from those of other lists in a
// byte behind their end, else they would be the same requests.
func (b *bench) list(rows int) (file string, err error) {
	b.lists++
	dir := filepath.Join(b.dir, strconv.Itoa(b.lists))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("file\n")
	for i := range rows {
		fmt.Fprintln(&text, i%len(names))
	}
	for i, photo := range b.bytes {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), append(slices.Clip(photo), byte(b.lists)), 0o600))
	}
	file = filepath.Join(dir, "list.csv")
	return file, errors.Join(err, os.WriteFile(file, []byte(text.String()), 0o600))
}

// bringIn imports a list with this many rows.
func (b *bench) bringIn(ctx context.Context, sum *outcome, rows int, bucket string) error {
	file, err := b.list(rows)
	if err != nil {
		return err
	}
	return b.measure(sum, func() error {
		source, err := list.Open([]string{file}, list.Options{})
		if err != nil {
			return err
		}
		i := b.cluster.Info()
		var said strings.Builder
		got, err := importing.Run(ctx, importing.Config{
			Client: client.Config{
				BaseURLs: i.BaseURLs, CAFile: i.CAFile, AccessKey: i.AccessKey, SecretKey: i.SecretKey, Region: i.Region, Service: i.Service,
				APIKey: b.client.APIKey,
			},
			Source: source, Report: file + ".report.csv", Bucket: bucket, Out: &said, Words: func(err error) error { return err },
		})
		if err == nil && got.Registered != rows {
			err = fmt.Errorf("%d of %d rows are registered: %s", got.Registered, rows, &said)
		}
		sum.done += rows
		return errors.Join(err, source.Close())
	})
}

// measure adds the time of do to a sum.
func (b *bench) measure(sum *outcome, do func() error) error {
	u, err := machine.Watch(do, b.cluster.PIDs()...)
	sum.elapsed += u.Elapsed
	sum.cpu += u.CPU
	sum.used += u.Own
	return err
}
