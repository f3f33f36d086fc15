package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"facet/engine"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	pipelineGoal = 1.25 // × (models + decoder)
	embedderGoal = .55  // × as published
	portraitPart = .35  // of the largest face's side, as the service asks for
)

// enginePart compares an extraction with the bare models and the bare decoder.
func (b *bench) enginePart(ctx context.Context) error {
	list, err := b.photos()
	if err != nil {
		return err
	}
	bare, err := openBare(b.files, b.engine.Pack())
	if err != nil {
		return err
	}
	defer bare.close()
	if err := bare.feed(ctx, b.engine, list[0].data); err != nil {
		return fmt.Errorf("feed the models: %w", err)
	}
	if err := b.compareEmbedder(bare); err != nil {
		return err
	}
	for _, p := range list {
		for _, mode := range []struct {
			name    string
			extract func([]byte) ([]engine.Face, error)
		}{
			{"one face", func(data []byte) ([]engine.Face, error) { return b.engine.ExtractLarge(ctx, data, portraitPart) }},
			{"all faces", func(data []byte) ([]engine.Face, error) { return b.engine.Extract(ctx, data) }},
		} {
			rows, err := b.comparePipeline(bare, p, mode.extract)
			if err != nil {
				return err
			}
			if err := table.Print(b.out, "Extraction, "+mode.name+", "+p.name+", one thread, median of rounds", rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparePipeline measures one kind of extraction of one photo.
func (b *bench) comparePipeline(bare *bare, p photo, extract func([]byte) ([]engine.Face, error)) ([]table.Row, error) {
	before := b.engine.Work()
	faces, err := extract(p.data)
	if err != nil {
		return nil, err
	}
	if len(faces) != 1 {
		return nil, fmt.Errorf("%s: %d faces, want 1", p.name, len(faces))
	}
	w := difference(b.engine.Work(), before)
	var nets, decoder, whole machine.Sample
	for range b.rounds {
		if err := errors.Join(
			nets.Time(func() error { return bare.models(w) }),
			decoder.Time(func() error { return bare.decode(p, w) }),
			whole.Time(func() error { _, err := extract(p.data); return err }),
		); err != nil {
			return nil, err
		}
	}
	return []table.Row{
		{
			What: "models alone", Value: nets.MS(.5), Unit: "ms",
			About: fmt.Sprintf("%d × detector, %d × landmarks, %d × embedder", w.Detector, w.Landmarks, w.Embedder),
		},
		{What: "JPEG decoder alone", Value: decoder.MS(.5), Unit: "ms", About: scales(w)},
		{What: "pipeline", Value: whole.MS(.5), Unit: "ms"},
		{What: "pipeline / both", Value: whole.MS(.5) / (nets.MS(.5) + decoder.MS(.5)), Unit: "×", Goal: pipelineGoal, Most: true},
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

// scales returns the scales at which an extraction decoded, as text.
func scales(w engine.Work) string {
	var text []string
	for i, n := range w.Decoded {
		if n > 0 {
			text = append(text, fmt.Sprintf("%d × at 1/%d", n, 1<<i))
		}
	}
	return strings.Join(text, ", ")
}

// compareEmbedder measures the embedder beside the published model, both on the same
// face and in the same kind of session.
func (b *bench) compareEmbedder(bare *bare) error {
	var own, published machine.Sample
	for range 2 * b.rounds {
		if err := errors.Join(own.Time(bare.embedder.Run), published.Time(bare.published.Run)); err != nil {
			return err
		}
	}
	return table.Print(b.out, "Embedder, on a face, one thread, median of rounds", []table.Row{
		{What: "as published", Value: published.MS(.5), Unit: "ms"},
		{What: "as the pack has it", Value: own.MS(.5), Unit: "ms"},
		{What: "ratio", Value: own.MS(.5) / published.MS(.5), Unit: "×", Goal: embedderGoal, Most: true},
	})
}
