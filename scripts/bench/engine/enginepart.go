package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"facet/engine"
	"facet/engine/models"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	pipelineGoal = 1.15 // × (models + decoder)
	packGoal     = 1.6  // × the time of mobile
	embedderGoal = .55  // × as published
	portraitPart = .35  // of the largest face's side, as the service asks for
)

// enginePart compares extractions of each pack with the bare models and the bare decoder, and
// the packs with each other.
func (b *bench) enginePart(ctx context.Context) error {
	list, err := b.photos()
	if err != nil {
		return err
	}
	var engines []*engine.Engine
	for _, name := range models.Names() {
		files := b.files
		files.Model = name
		e, err := files.Engine(1)
		if err != nil {
			return err
		}
		defer e.Close()
		engines = append(engines, e)
		if err := b.packPart(ctx, e, list); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return b.comparePacks(ctx, engines, list[0])
}

// packPart measures one pack.
func (b *bench) packPart(ctx context.Context, e *engine.Engine, list []photo) error {
	bare, err := openBare(b.files, e.Pack())
	if err != nil {
		return err
	}
	defer bare.close()
	if err := bare.feed(ctx, e, list[0].data); err != nil {
		return fmt.Errorf("feed the models: %w", err)
	}
	if bare.published != nil {
		if err := b.compareEmbedder(bare); err != nil {
			return err
		}
	}
	title := e.Pack().Manifest.Title()
	for _, p := range list {
		for _, mode := range []struct {
			name    string
			extract func([]byte) ([]engine.Face, error)
		}{
			{"one face", func(data []byte) ([]engine.Face, error) { return e.ExtractLarge(ctx, data, portraitPart) }},
			{"all faces", func(data []byte) ([]engine.Face, error) { return e.Extract(ctx, data) }},
		} {
			rows, err := b.comparePipeline(e, bare, p, mode.extract)
			if err != nil {
				return err
			}
			if err := table.Print(b.out, "Extraction, pack "+title+", "+mode.name+", "+p.name+", one thread, median of rounds", rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparePacks measures a portrait with the packs in turn.
func (b *bench) comparePacks(ctx context.Context, engines []*engine.Engine, p photo) error {
	times := make([]machine.Sample, len(engines))
	for range b.rounds {
		for i, e := range engines {
			if err := times[i].Time(func() error { _, err := e.ExtractLarge(ctx, p.data, portraitPart); return err }); err != nil {
				return err
			}
		}
	}
	var rows []table.Row
	for i, e := range engines {
		rows = append(rows, table.Row{What: e.Pack().Manifest.Title(), Value: times[i].MS(.5), Unit: "ms"})
	}
	return table.Print(b.out, "A portrait of "+p.name+" with each pack, one thread, median of rounds", append(rows,
		table.Row{What: rows[0].What + " / " + rows[1].What, Value: times[0].MS(.5) / times[1].MS(.5), Unit: "×", Goal: packGoal, Most: true},
		table.Row{What: rows[2].What + " / " + rows[1].What, Value: times[2].MS(.5) / times[1].MS(.5), Unit: "×"}))
}

// comparePipeline measures one kind of extraction of one photo.
func (b *bench) comparePipeline(e *engine.Engine, bare *bare, p photo, extract func([]byte) ([]engine.Face, error)) ([]table.Row, error) {
	before := e.Work()
	faces, err := extract(p.data)
	if err != nil {
		return nil, err
	}
	if len(faces) != 1 {
		return nil, fmt.Errorf("%s: %d faces, want 1", p.name, len(faces))
	}
	w := difference(e.Work(), before)
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
			About: fmt.Sprintf("%d × detector, %d × landmarks, %d × embedder", w.Detector, w.Landmarks, w.Embedder+w.Second),
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
	after.Second -= before.Second
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
