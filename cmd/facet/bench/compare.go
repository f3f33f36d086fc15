package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"facet/engine/accuracy"
)

// documentBytesMax is the most bytes of a JSON file with measurements.
const documentBytesMax = 16 << 20

// colours are those of the packs in one picture.
var colours = []string{blue, orange, "#2a8a4a", "#8a3aa0", grey}

// Compare prints the measurements in JSON files of Accuracy side by side, and draws their
// curves into an SVG file plot, unless that is "". Each is of every pair of the same
// photographs.
func Compare(out io.Writer, files []string, plot string) error {
	if len(files) > len(colours) {
		return fmt.Errorf("%d files, the most is %d", len(files), len(colours))
	}
	var docs []*Document
	for _, file := range files {
		d, err := readDocument(file)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		if first := append(docs, d)[0]; d.Data.Photos != first.Data.Photos || d.Data.Persons != first.Data.Persons || d.Data.Name != first.Data.Name {
			return fmt.Errorf("%s measures %d photographs of %d persons (%s), and %s %d of %d (%s): only measurements of the same photographs can be compared",
				filepath.Base(files[0]), first.Data.Photos, first.Data.Persons, first.Data.Name, filepath.Base(file), d.Data.Photos, d.Data.Persons, d.Data.Name)
		}
		docs = append(docs, d)
	}
	if err := packTable(docs).text(out); err != nil {
		return err
	}
	data := docs[0].Data
	if data.Name != "" {
		data.Name += ": "
	}
	if _, err := fmt.Fprintf(out, "\n%s%d photographs of %d persons, every pair. In brackets: 95 %% intervals, by resampling of persons.\n",
		data.Name, data.Photos, data.Persons); err != nil || plot == "" {
		return err
	}
	return wrap("write plot", plotPacks(docs, plot))
}

func readDocument(file string) (*Document, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read measurements: %w", err)
	}
	defer f.Close()
	var d Document
	if err := json.NewDecoder(io.LimitReader(f, documentBytesMax)).Decode(&d); err != nil {
		return nil, fmt.Errorf("read measurements: %w", err)
	}
	if d.All == nil || d.Pack.Name == "" {
		return nil, fmt.Errorf("it has no measurement of every pair: write it with facet bench accuracy --images DIR --json FILE")
	}
	return &d, nil
}

// packTable has a column for each pack.
func packTable(docs []*Document) table {
	row := func(what string, of func(*Document) string) []string {
		cells := []string{what}
		for _, d := range docs {
			cells = append(cells, of(d))
		}
		return cells
	}
	t := table{
		row("", func(d *Document) string { return d.Pack.Name }),
		row("numbers of a template", func(d *Document) string { return number(d.Pack.Dim) }),
		row("scores fitted on", func(d *Document) string {
			if d.Data.CrossFit {
				return "other persons"
			}
			return "the pack's persons"
		}),
		row("photographs without a face", func(d *Document) string { return number(d.Data.FTA.Events) }),
		row("EER", func(d *Document) string { return d.All.EER.String() }),
	}
	for i, target := range docs[0].All.Targets {
		t = append(t, row("FNMR at FMR ≤ "+power(target.Target), func(d *Document) string {
			if i >= len(d.All.Targets) {
				return notShown
			}
			return d.All.Targets[i].FNMR.String()
		}))
	}
	for _, at := range docs[0].All.At {
		of := func(d *Document) accuracy.AtThreshold {
			for _, a := range d.All.At {
				if a.Threshold == at.Threshold {
					return a
				}
			}
			return accuracy.AtThreshold{}
		}
		t = append(t,
			row(fmt.Sprintf("FMR at %d", at.Threshold), func(d *Document) string { return of(d).FMR.String() }),
			row("  mean over pairs of persons", func(d *Document) string {
				if mean := of(d).FMRPerson; mean != nil {
					return mean.String()
				}
				return notShown
			}),
			row(fmt.Sprintf("FNMR at %d", at.Threshold), func(d *Document) string { return of(d).FNMR.String() }))
	}
	return t
}

// plotPacks draws a DET curve for each pack.
func plotPacks(docs []*Document, file string) error {
	p := newDET()
	for i, d := range docs {
		curve := make([]point, 0, len(d.All.DET))
		for _, at := range d.All.DET {
			if at.FMR > 0 && at.FMR < 1 && at.FNMR > 0 && at.FNMR < 1 {
				curve = append(curve, point{X: accuracy.Deviate(at.FMR), Y: accuracy.Deviate(at.FNMR)})
			}
		}
		p.addCurve(d.Pack.Name, colours[i], curve)
	}
	return p.write(file)
}
