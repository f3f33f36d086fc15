package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"facet/cmd/facet/dev"
	"facet/internal/testkit"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

// The goals. Everything around the kernel takes less time than the models, for a
// gallery of any size. In a gallery of a million templates it takes half as much time as
// the kernel, and many searches at once are quicker than those of FAISS behind HTTP.
const (
	loneGoal   = 1.5 // × the kernel's time, for a lone search
	manyGoal   = 2.5 // × its processor time, for one of many
	peerGoal   = 1.3 // × the peer's searches a second, for many
	modelsGoal = 1.25
	photoGoal  = 1.2       // × the engine's time, for a lone search by photo
	goalRows   = 1_000_000 // loneGoal and peerGoal apply from this many templates on
)

const (
	aloneShare  = 4   // a measurement without the service takes this part of a phase
	hiddenShare = .2  // of the processor time: a place with a larger share is marked
	restShare   = .08 // of the processor time at rest: a smaller place is not printed
)

// service has the clients of the running nodes.
type service struct {
	b      *bench
	info   dev.Info
	client *https.Client
	pids   []int
	rest   float64 // cores that the nodes take at rest
	models float64 // ms that the models take for the photo, measured lately, because a machine's speed changes
}

// way is one kind of probe.
type way struct {
	name   string
	probes []https.Operation
	want   []probe // the answer to each probe; empty: the answer must have all events of the photo
}

// measured has the measurements of one kind of probe with one number of concurrent
// searches.
type measured struct {
	load.Result
	atOnce            int
	nodes, clients    float64 // processor time of a search, ms
	rest              float64 // processor time that the nodes also take at rest
	stages            stages
	shares            map[string]float64
	kernel            load.Result
	kernelCPU         float64 // of a search, ms
	peer              load.Result
	single, singleCPU float64 // on one core, one shard after the other: p50 and processor time, ms
}

func (b *bench) measure(ctx context.Context) (err error) {
	c, err := b.files.Start(ctx, b.shape)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s := &service{b: b, info: c.Info(), pids: c.PIDs()}
	if s.client, err = https.New(s.info); err != nil {
		return err
	}
	s.client.APIKey = b.gallery.APIKey
	if err := b.warm(ctx, s.client, s.info.BaseURLs); err != nil {
		return err
	}
	if err := s.idle(ctx); err != nil {
		return err
	}
	ways, err := b.ways()
	if err != nil {
		return err
	}
	for _, w := range ways {
		for _, n := range b.atOnce {
			l, err := s.measure(ctx, w, n)
			if err != nil {
				return fmt.Errorf("%s, %d at once: %w", w.name, n, err)
			}
			if err := s.print(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle prints the processor time and memory that the nodes take without requests. All
// other measurements include them.
func (s *service) idle(ctx context.Context) error {
	if err := beginProfiles(s.info); err != nil {
		return err
	}
	u, err := machine.Watch(func() error {
		select {
		case <-ctx.Done():
		case <-time.After(s.b.phase):
		}
		return ctx.Err()
	}, s.pids...)
	if err != nil {
		return err
	}
	shares, err := endProfiles(ctx, s.info)
	if err != nil {
		return err
	}
	s.rest = u.CPU.Seconds() / u.Elapsed.Seconds()
	fmt.Fprintf(s.b.out, "At rest the nodes take %.1f %% of a core and %.2f GB together. Of that processor time:", 100*s.rest, u.MostMB/1e3)
	for _, p := range append(places, where{name: elsewhere}) {
		if shares[p.name] >= restShare {
			fmt.Fprintf(s.b.out, " %s %.0f %%;", p.name, 100*shares[p.name])
		}
	}
	fmt.Fprintln(s.b.out)
	return nil
}

// ways makes the probes of each kind.
func (b *bench) ways() ([]way, error) {
	templates := way{name: "probe by template", want: b.kernel.probes}
	for _, p := range b.kernel.probes {
		o, err := https.NewSearch(probeImage(p.template))
		if err != nil {
			return nil, err
		}
		templates.probes = append(templates.probes, o)
	}
	o, err := https.NewSearch(b.photo)
	if err != nil {
		return nil, err
	}
	return []way{templates, {name: "photo through the models", probes: []https.Operation{o}}}, nil
}

// checkAll compares every node's answer to every probe with the kernel's answer.
func (s *service) checkAll(w way) error {
	for _, url := range s.info.BaseURLs {
		k, err := s.client.Dial(url, nil)
		if err != nil {
			return err
		}
		for i := range w.want {
			a, err := k.Do(w.probes[i])
			if err == nil {
				err = w.want[i].check(a)
			}
			if err != nil {
				k.Close()
				return err
			}
		}
		k.Close()
	}
	return nil
}

// measure loads the service and the kernel in turn.
func (s *service) measure(ctx context.Context, w way, n int) (l measured, err error) {
	l.atOnce = n
	if err := s.checkAll(w); err != nil {
		return l, err
	}
	var sources []*load.Source
	for _, url := range s.info.BaseURLs {
		source := load.NewSource(s.client, url)
		defer source.Close()
		sources = append(sources, source)
	}
	do := func(worker, i int) error {
		a, _, err := sources[(worker+i)%len(sources)].Do(w.probes[(worker*7+i)%len(w.probes)])
		if err == nil && a.Status != http.StatusOK && (len(w.want) == 0 || a.Status != http.StatusNotFound) {
			err = fmt.Errorf("a search is answered %d %s", a.Status, a.Body)
		}
		return err
	}
	if _, err := load.Closed(ctx, n, s.b.phase/aloneShare, do); err != nil {
		return l, err
	}
	if err := s.service(ctx, &l, do); err != nil {
		return l, err
	}
	if err := s.alone(ctx, w, &l); err != nil {
		return l, err
	}
	return l, s.timeModels(ctx)
}

// service loads the nodes and measures time, processor time and metrics.
func (s *service) service(ctx context.Context, l *measured, do func(worker, i int) error) error {
	figuresBefore, err := cluster.Scrape(ctx, s.info)
	if err != nil {
		return err
	}
	if err := beginProfiles(s.info); err != nil {
		return err
	}
	u, err := machine.Watch(func() (err error) {
		l.Result, err = load.Closed(ctx, l.atOnce, s.b.phase, do)
		return err
	}, s.pids...)
	if err != nil {
		return err
	}
	l.nodes, l.clients = l.Each(u.CPU), l.Each(u.Own)
	l.rest = s.rest * 1e3 / l.Rate()
	if l.shares, err = endProfiles(ctx, s.info); err != nil {
		return err
	}
	figuresAfter, err := cluster.Scrape(ctx, s.info)
	l.stages = stagesOf(figuresBefore, figuresAfter)
	return err
}

// alone searches with the kernel in two ways: with as many searches and shards at once
// as the service, and one search and shard after the other.
func (s *service) alone(ctx context.Context, w way, l *measured) (err error) {
	k := s.b.kernel
	template := func(worker, i int) []float32 {
		if len(w.want) == 0 {
			return s.b.face.Template
		}
		return w.want[(worker*7+i)%len(w.want)].template
	}
	u, err := machine.Watch(func() (err error) {
		l.kernel, err = load.Closed(ctx, l.atOnce, s.b.phase/aloneShare, func(worker, i int) error {
			_, err := k.search(ctx, template(worker, i))
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	l.kernelCPU = l.kernel.Each(u.Own)
	var single load.Result
	u, err = machine.Watch(func() (err error) {
		single, err = load.Closed(ctx, 1, s.b.phase/aloneShare, func(_, i int) error { return k.searchAlone(template(0, i)) })
		return err
	})
	if l.single, l.singleCPU = single.Times.MS(.5), single.Each(u.Own); err == nil && s.b.peer != nil && len(w.want) > 0 {
		l.peer, err = s.b.peer.load(ctx, s.b, l.atOnce)
	}
	return err
}

// print prints the results of one load.
func (s *service) print(w way, l measured) error {
	out := s.b.out
	line := func(name string, r load.Result, cpu string) []string {
		return []string{name, fmt.Sprintf("%.0f", r.Rate()), ms2(r.Times.MS(.5)), ms2(r.Times.MS(.99)), cpu}
	}
	title := fmt.Sprintf("%s, %d at once", w.name, l.atOnce)
	lines := [][]string{
		line("whole service", l.Result, fmt.Sprintf("%.3f nodes (%.3f of it also at rest) + %.3f clients", l.nodes, l.rest, l.clients)),
		line("kernel alone, all shards at once", l.kernel, fmt.Sprintf("%.3f", l.kernelCPU)),
		{"kernel alone, one core, one by one", fmt.Sprintf("%.0f", 1e3/l.single), ms2(l.single), "", fmt.Sprintf("%.3f", l.singleCPU)},
	}
	if l.peer.Times != nil {
		lines = append(lines, line("FAISS PQ behind HTTP", l.peer, fmt.Sprintf("%d × as many candidates compared again", s.b.peer.breadth)))
	}
	err := table.Write(out, title, []string{"", "searches/s", "p50 ms", "p99 ms", "processor ms a search"}, lines)
	if err := errors.Join(err, s.printStages(l), s.printShares(l)); err != nil {
		return err
	}
	if len(w.want) == 0 {
		return s.printModels(l)
	}
	mine := l.nodes - l.rest
	cpu := table.Row{What: "processor time of a search / kernel alone", Value: mine / l.kernelCPU, Unit: "×", About: fmt.Sprintf("%.3f ms of the nodes, without what they take at rest; the kernel's %.3f", mine, l.kernelCPU)}
	if l.atOnce == 1 {
		times := table.Row{What: "time of a search / kernel alone, p50", Value: l.Times.MS(.5) / l.kernel.Times.MS(.5), Unit: "×"}
		if s.b.kernel.rows >= goalRows {
			times.Goal, times.Most = loneGoal, true
		}
		beside := table.Row{What: "time beside the kernel's / the models' time", Value: (l.Times.MS(.5) - l.kernel.Times.MS(.5)) / s.models, Unit: "×", Goal: 1, Most: true}
		beside.About = fmt.Sprintf("%.2f ms beside the kernel's; the models take %.1f ms for a photo", beside.Value*s.models, s.models)
		return table.Print(out, "Goals", []table.Row{times, beside, cpu})
	}
	cpu.Goal, cpu.Most = manyGoal, true
	rows := []table.Row{{What: "searches a second: kernel alone / service", Value: l.kernel.Rate() / l.Rate(), Unit: "×"}, cpu}
	if l.peer.Times != nil {
		beside := table.Row{What: "searches a second: service / FAISS PQ behind HTTP", Value: l.Rate() / l.peer.Rate(), Unit: "×"}
		if s.b.kernel.rows >= goalRows {
			beside.Goal = peerGoal
		}
		rows = append(rows, beside)
	}
	return table.Print(out, "Goals", rows)
}

func ms2(v float64) string { return fmt.Sprintf("%.2f", v) }

// printStages prints the mean times of the stages of a request, from the nodes' own
// metrics.
func (s *service) printStages(l measured) error {
	m := l.stages
	whole := l.Times.MeanMS()
	var lines [][]string
	for _, r := range []struct {
		name string
		ms   float64
	}{
		{"client: its work, TLS, the way to the node", whole - m.request},
		{"node: HTTP, signature, JSON, base64", m.request - m.extract - m.shards - m.merge},
		{"probe to template", m.extract},
		{"shards: way to other nodes, proof of leadership, the slowest one", m.shards - m.shard},
		{"shard: the search of one, waiting for a pass included", m.shard},
		{"merge", m.merge},
		{"all", whole},
	} {
		lines = append(lines, share(r.name, r.ms, r.ms/whole))
	}
	return table.Write(s.b.out, "Where the time goes (means, from the nodes' metrics)", []string{"", "", ""}, lines)
}

func share(name string, ms, of float64) []string {
	return []string{name, fmt.Sprintf("%.3f ms", ms), fmt.Sprintf("%.0f %%", 100*of)}
}

// printShares prints the shares of the nodes' processor time, from their profiles.
func (s *service) printShares(l measured) error {
	var lines [][]string
	for _, p := range append(places, where{name: elsewhere}) {
		hint := ""
		if l.shares[p.name] > hiddenShare && p.name != places[0].name {
			hint = "large"
		}
		lines = append(lines, append(share(p.name, l.shares[p.name]*l.nodes, l.shares[p.name]), hint))
	}
	return table.Write(s.b.out, "Where the nodes' processor time goes (profiles)", []string{"", "", "", ""}, lines)
}

// timeModels measures the time of the models alone, which are most of a search by
// photo.
func (s *service) timeModels(ctx context.Context) error {
	r, err := load.Closed(ctx, 1, s.b.phase/aloneShare, func(int, int) error {
		_, err := s.b.engine.ExtractLarge(ctx, s.b.photo, portraitShare)
		return err
	})
	s.models = r.Times.MS(.5)
	return err
}

// printModels compares a search by photo with the models.
func (s *service) printModels(l measured) error {
	mine := l.nodes - l.rest
	rows := []table.Row{{
		What: "processor time of a search / models and kernel alone", Value: mine / (s.models + l.kernelCPU), Unit: "×", Goal: modelsGoal, Most: true,
		About: fmt.Sprintf("%.1f ms of the nodes, without what they take at rest; models %.1f ms, kernel %.3f ms", mine, s.models, l.kernelCPU),
	}}
	if l.atOnce == 1 {
		rows = append(rows, table.Row{What: "time of a search / the engine alone, p50", Value: l.Times.MS(.5) / s.models, Unit: "×", Goal: photoGoal, Most: true})
		rows = append(rows, table.Row{What: "time of a search / models and kernel alone, p50", Value: l.Times.MS(.5) / (s.models + l.kernel.Times.MS(.5)), Unit: "×", Goal: modelsGoal, Most: true})
	}
	return table.Print(s.b.out, "Goals", rows)
}

// stages are the mean times of the stages of a search, in milliseconds.
type stages struct {
	request, extract, shards, shard, merge float64
}

func stagesOf(before, after testkit.Figures) (s stages) {
	s.request, _ = after.Mean(before, "facet_request_duration_seconds", `{operation="POST `+https.SearchPath+`"}`)
	for name, to := range map[string]*float64{"extract": &s.extract, "shards": &s.shards, "merge": &s.merge} {
		*to, _ = after.Mean(before, "facet_search_duration_seconds", `{stage="`+name+`"}`)
	}
	s.shard, _ = after.Mean(before, "facet_shard_search_duration_seconds", "")
	return s
}
