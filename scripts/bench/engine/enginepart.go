package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"

	"facet/engine"
	"facet/scripts/bench/table"
)

const (
	pipelineGoal = 1.25 // × (models + decoder)
	embedderGoal = .55  // × as published
	portraitPart = .35  // of the largest face's side, as the service asks for
)

// enginePart compares an extraction with the bare models and the bare decoder.
func enginePart(ctx context.Context, o options, e *engine.Engine) error {
	list, err := photos(o.assets)
	if err != nil {
		return err
	}
	bare, err := openBare(o, e.Pack())
	if err != nil {
		return err
	}
	defer bare.close()
	if err := bare.feed(ctx, e, list[0].data); err != nil {
		return fmt.Errorf("feed the models: %w", err)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := compareEmbedder(o, bare); err != nil {
		return err
	}
	for _, p := range list {
		for _, mode := range []struct {
			name    string
			extract func([]byte) ([]engine.Face, error)
		}{
			{"one face", func(data []byte) ([]engine.Face, error) { return e.ExtractLarge(ctx, data, portraitPart) }},
			{"all faces", func(data []byte) ([]engine.Face, error) { return e.Extract(ctx, data) }},
		} {
			rows, err := comparePipeline(o.rounds, bare, e, p, mode.extract)
			if err != nil {
				return err
			}
			if err := table.Print(o.out, "Extraction, "+mode.name+", "+p.name+", one thread, median of rounds", rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparePipeline measures one kind of extraction of one photo.
func comparePipeline(rounds int, bare *bare, e *engine.Engine, p photo, extract func([]byte) ([]engine.Face, error)) ([]table.Row, error) {
	before := e.Work()
	faces, err := extract(p.data)
	if err != nil {
		return nil, err
	}
	if len(faces) != 1 {
		return nil, fmt.Errorf("%s: %d faces, want 1", p.name, len(faces))
	}
	w := difference(e.Work(), before)
	var nets, decoder, whole sample
	for range rounds {
		if err := errors.Join(
			nets.time(func() error { return bare.models(w) }),
			decoder.time(func() error { return bare.decode(p, w) }),
			whole.time(func() error { _, err := extract(p.data); return err }),
		); err != nil {
			return nil, err
		}
	}
	return []table.Row{
		{
			What: "models alone", Value: nets.ms(), Unit: "ms",
			About: fmt.Sprintf("%d × detector, %d × landmarks, %d × embedder", w.Detector, w.Landmarks, w.Embedder),
		},
		{What: "JPEG decoder alone", Value: decoder.ms(), Unit: "ms", About: scales(w)},
		{What: "pipeline", Value: whole.ms(), Unit: "ms"},
		{What: "pipeline / both", Value: whole.ms() / (nets.ms() + decoder.ms()), Unit: "×", Goal: pipelineGoal, Most: true},
	}, nil
}

func difference(after, before engine.Work) engine.Work {
	after.Detector -= before.Detector
	after.Landmarks -= before.Landmarks
	after.Embedder -= before.Embedder
	for i := range after.Decoded {
		after.Decoded[i] -= before.Decoded[i]
	}
	return after
}

// scales tells at which scales an extraction decoded.
func scales(w engine.Work) string {
	var text []string
	for i, n := range w.Decoded {
		if n > 0 {
			text = append(text, fmt.Sprintf("%d × at 1/%d", n, 1<<i))
		}
	}
	return strings.Join(text, ", ")
}

// compareEmbedder measures the embedder beside the model as it was published, both
// on the same face and in the same kind of session.
func compareEmbedder(o options, bare *bare) error {
	var own, published sample
	for range 2 * o.rounds {
		if err := errors.Join(own.time(bare.embedder.Run), published.time(bare.published.Run)); err != nil {
			return err
		}
	}
	return table.Print(o.out, "Embedder, on a face, one thread, median of rounds", []table.Row{
		{What: "as published", Value: published.ms(), Unit: "ms"},
		{What: "as the pack has it", Value: own.ms(), Unit: "ms"},
		{What: "ratio", Value: own.ms() / published.ms(), Unit: "×", Goal: embedderGoal, Most: true},
	})
}
