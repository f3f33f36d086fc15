package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"facet/cmd/facet/dev"
	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

// Goals. What surrounds the kernel takes less than the models whatever the gallery's
// size; beside a scan of a million templates it takes no more than that does.
const (
	loneGoal   = 2   // × the kernel's time, for a lone search
	manyGoal   = 2.5 // × its processor time, for one of many
	modelsGoal = 1.25
	goalRows   = 1_000_000 // from how many templates on loneGoal counts
)

const (
	aloneShare  = 4   // the part of a phase that what takes no service gets
	hiddenShare = .2  // of the processor time: a place that is larger is marked
	restShare   = .08 // a place that is smaller is not told, at rest
)

// service is what the parts know of the running nodes.
type service struct {
	b      *bench
	info   dev.Info
	client *https.Client
	pids   []int
	rest   float64 // cores that the nodes take at rest
	models float64 // ms that the models take for the photo, alone: lately, as machines change
}

// way is one kind of probe.
type way struct {
	name   string
	probes []https.Operation
	want   []probe // of each; empty: only that all of the photo's are there
}

// load is what was measured of one way with so many at once.
type load struct {
	result
	atOnce            int
	nodes, clients    float64 // processor time of a search, ms
	rest              float64 // part of nodes that they take at rest, too
	stages            stages
	shares            map[string]float64
	kernel            result
	kernelCPU         float64 // of a search, ms
	single, singleCPU float64 // on one core, one shard after the other: p50 and processor time, ms
}

func (b *bench) measure(ctx context.Context) (err error) {
	c, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s := &service{b: b, info: c.Info()}
	if s.client, err = https.New(s.info); err != nil {
		return err
	}
	s.client.APIKey = b.note.APIKey
	for _, n := range s.info.Nodes {
		s.pids = append(s.pids, n.PID)
	}
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

// idle tells what the nodes take when nobody asks, which is in all that follows.
func (s *service) idle(ctx context.Context) error {
	before, err := machine.CPU(s.pids...)
	if err != nil {
		return err
	}
	if err := beginProfiles(s.info); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.b.phase):
	}
	after, err := machine.CPU(s.pids...)
	if err != nil {
		return err
	}
	shares, err := endProfiles(ctx, s.info)
	if err != nil {
		return err
	}
	s.rest = (after - before).Seconds() / s.b.phase.Seconds()
	var resident float64
	for _, pid := range s.pids {
		bytes, err := machine.Resident(pid)
		if err != nil {
			return err
		}
		resident += bytes
	}
	fmt.Fprintf(s.b.out, "At rest the nodes take %.1f %% of a core and %.2f GB together. Of that processor time:", 100*s.rest, resident/1e9)
	for _, p := range append(places, where{name: elsewhere}) {
		if shares[p.name] >= restShare {
			fmt.Fprintf(s.b.out, " %s %.0f %%;", p.name, 100*shares[p.name])
		}
	}
	fmt.Fprintln(s.b.out)
	return nil
}

// ways makes the probes.
func (b *bench) ways() ([]way, error) {
	templates := way{name: "probe by template", want: b.kernel.probes}
	for _, p := range b.kernel.probes {
		o, err := newSearch(probeImage(p.template))
		if err != nil {
			return nil, err
		}
		templates.probes = append(templates.probes, o)
	}
	o, err := newSearch(b.photo)
	if err != nil {
		return nil, err
	}
	return []way{templates, {name: "photo through the models", probes: []https.Operation{o}}}, nil
}

// checkAll compares the answers of every node to every probe with the kernel's.
func (s *service) checkAll(w way) error {
	for _, url := range s.info.BaseURLs {
		k, err := s.client.Dial(url, nil)
		if err != nil {
			return err
		}
		for i := range w.want {
			a, err := k.Do(w.probes[i])
			if err == nil {
				err = w.want[i].check(a.Status, a.Body)
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
func (s *service) measure(ctx context.Context, w way, n int) (l load, err error) {
	l.atOnce = n
	if err := s.checkAll(w); err != nil {
		return l, err
	}
	conns, err := dialAll(s.client, s.info.BaseURLs, n)
	if err != nil {
		return l, err
	}
	defer conns.close()
	do := func(worker, i int) error {
		number := (worker*7 + i) % len(w.probes)
		a, err := conns.do(worker, i, w.probes[number])
		if err == nil && a.Status != statusFound && (len(w.want) == 0 || a.Status != statusNone) {
			err = fmt.Errorf("a search is answered %d %s", a.Status, a.Body)
		}
		return err
	}
	if _, err := closed(ctx, n, s.b.phase/aloneShare, do); err != nil {
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

// service loads the nodes and reads everywhere what it took.
func (s *service) service(ctx context.Context, l *load, do func(worker, i int) error) error {
	figuresBefore, err := scrape(ctx, s.info, s.client.TLS)
	if err != nil {
		return err
	}
	if err := beginProfiles(s.info); err != nil {
		return err
	}
	nodes, err1 := machine.CPU(s.pids...)
	own, err2 := machine.OwnCPU()
	l.result, err = closed(ctx, l.atOnce, s.b.phase, do)
	nodesAfter, err3 := machine.CPU(s.pids...)
	ownAfter, err4 := machine.OwnCPU()
	if err = errors.Join(err, err1, err2, err3, err4); err != nil {
		return err
	}
	l.nodes, l.clients = l.each(nodesAfter-nodes), l.each(ownAfter-own)
	l.rest = s.rest * 1e3 / l.rate()
	if l.shares, err = endProfiles(ctx, s.info); err != nil {
		return err
	}
	figuresAfter, err := scrape(ctx, s.info, s.client.TLS)
	l.stages = stagesOf(figuresBefore, figuresAfter)
	return err
}

func (r *result) each(sum time.Duration) float64 {
	return sum.Seconds() * 1e3 / float64(max(len(r.times), 1))
}

// alone asks the kernel the same: as many at once and all shards at once, as the service
// does; and one search and shard after the other.
func (s *service) alone(ctx context.Context, w way, l *load) (err error) {
	k := s.b.kernel
	template := func(worker, i int) []float32 {
		if len(w.want) == 0 {
			return s.b.face.Template
		}
		return w.want[(worker*7+i)%len(w.want)].template
	}
	before, err1 := machine.OwnCPU()
	l.kernel, err = closed(ctx, l.atOnce, s.b.phase/aloneShare, func(worker, i int) error {
		_, err := k.search(ctx, template(worker, i))
		return err
	})
	after, err2 := machine.OwnCPU()
	if err = errors.Join(err, err1, err2); err != nil {
		return err
	}
	l.kernelCPU = l.kernel.each(after - before)
	single, err := closed(ctx, 1, s.b.phase/aloneShare, func(_, i int) error { return k.searchAlone(template(0, i)) })
	over, err2 := machine.OwnCPU()
	l.single, l.singleCPU = single.times.MS(.5), single.each(over-after)
	return errors.Join(err, err2)
}

// print tells one load.
func (s *service) print(w way, l load) error {
	out := s.b.out
	fmt.Fprintf(out, "\n## %s, %d at once\n\n", w.name, l.atOnce)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tsearches/s\tp50 ms\tp99 ms\tprocessor ms a search")
	fmt.Fprintf(t, "whole service\t%.0f\t%.2f\t%.2f\t%.3f nodes (%.3f of it also at rest) + %.3f clients\n",
		l.rate(), l.times.MS(.5), l.times.MS(.99), l.nodes, l.rest, l.clients)
	fmt.Fprintf(t, "kernel alone, all shards at once\t%.0f\t%.2f\t%.2f\t%.3f\n", l.kernel.rate(), l.kernel.times.MS(.5), l.kernel.times.MS(.99), l.kernelCPU)
	fmt.Fprintf(t, "kernel alone, one core, one by one\t%.0f\t%.2f\t\t%.3f\n", 1e3/l.single, l.single, l.singleCPU)
	if err := t.Flush(); err != nil {
		return err
	}
	s.printStages(l)
	s.printShares(l)
	if len(w.want) == 0 {
		return s.printModels(l)
	}
	mine := l.nodes - l.rest
	cpu := table.Row{What: "processor time of a search / kernel alone", Value: mine / l.kernelCPU, Unit: "×", About: fmt.Sprintf("%.3f ms of the nodes, without what they take at rest; the kernel's %.3f", mine, l.kernelCPU)}
	if l.atOnce == 1 {
		times := table.Row{What: "time of a search / kernel alone, p50", Value: l.times.MS(.5) / l.kernel.times.MS(.5), Unit: "×"}
		if s.b.kernel.rows >= goalRows {
			times.Goal, times.Most = loneGoal, true
		}
		beside := table.Row{What: "time beside the kernel's / the models' time", Value: (l.times.MS(.5) - l.kernel.times.MS(.5)) / s.models, Unit: "×", Goal: 1, Most: true}
		beside.About = fmt.Sprintf("%.2f ms beside the kernel's; the models take %.1f ms for a photo", beside.Value*s.models, s.models)
		return table.Print(out, "Goals", []table.Row{times, beside, cpu})
	}
	cpu.Goal, cpu.Most = manyGoal, true
	return table.Print(out, "Goals", []table.Row{{What: "searches a second: kernel alone / service", Value: l.kernel.rate() / l.rate(), Unit: "×"}, cpu})
}

// printStages tells where the time of a request goes, by the nodes' own metrics: means.
func (s *service) printStages(l load) {
	m := l.stages
	whole := l.times.MeanMS()
	fmt.Fprintf(s.b.out, "\nWhere the time goes (means, from the nodes' metrics)\n")
	t := tabwriter.NewWriter(s.b.out, 0, 0, 2, ' ', 0)
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
	} {
		fmt.Fprintf(t, "  %s\t%.3f ms\t%.0f %%\n", r.name, r.ms, 100*r.ms/whole)
	}
	fmt.Fprintf(t, "  all\t%.3f ms\t\n", whole)
	_ = t.Flush() // as all of standard output
}

// printShares tells where the processor time of the nodes goes, by their profiles.
func (s *service) printShares(l load) {
	fmt.Fprintf(s.b.out, "\nWhere the nodes' processor time goes (profiles)\n")
	t := tabwriter.NewWriter(s.b.out, 0, 0, 2, ' ', 0)
	for _, p := range append(places, where{name: elsewhere}) {
		share := l.shares[p.name]
		hint := ""
		if share > hiddenShare && p.name != places[0].name {
			hint = "large"
		}
		fmt.Fprintf(t, "  %s\t%.3f ms\t%.0f %%\t%s\n", p.name, share*l.nodes, 100*share, hint)
	}
	_ = t.Flush() // as all of standard output
}

// timeModels measures what the models take alone, which are most of a search by photo.
func (s *service) timeModels(ctx context.Context) error {
	r, err := closed(ctx, 1, s.b.phase/aloneShare, func(int, int) error {
		_, err := s.b.engine.ExtractLarge(ctx, s.b.photo, portraitShare)
		return err
	})
	s.models = r.times.MS(.5)
	return err
}

// printModels compares a search by photo with the models.
func (s *service) printModels(l load) error {
	mine := l.nodes - l.rest
	rows := []table.Row{{
		What: "processor time of a search / models and kernel alone", Value: mine / (s.models + l.kernelCPU), Unit: "×", Goal: modelsGoal, Most: true,
		About: fmt.Sprintf("%.1f ms of the nodes, without what they take at rest; models %.1f ms, kernel %.3f ms", mine, s.models, l.kernelCPU),
	}}
	if l.atOnce == 1 {
		rows = append(rows, table.Row{What: "time of a search / models and kernel alone, p50", Value: l.times.MS(.5) / (s.models + l.kernel.times.MS(.5)), Unit: "×", Goal: modelsGoal, Most: true})
	}
	return table.Print(s.b.out, "Goals", rows)
}
