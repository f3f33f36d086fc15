package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/models"
)

const (
	shortID = 12 // digits of an identity in a table

	photoBytesMax = 32 << 20
)

// ErrDamaged is returned when a pack differs from its manifest. The details were
// printed.
var ErrDamaged = errors.New("a model pack can't be used")

// Find returns the folder of a pack that is named by its folder in dir, by its name for
// people or by a path.
func Find(dir, name string) string {
	if name == models.TitleMobile {
		name = models.FolderMobile
	}
	if name == filepath.Base(name) && !strings.HasPrefix(name, ".") {
		return filepath.Join(dir, name)
	}
	return name
}

// List prints a table of the packs in the folders of dir.
func List(w io.Writer, dir string) error {
	list, err := models.List(dir)
	if err != nil {
		return packError(dir, err)
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no model pack in %s: run \"make setup\"", dir)
	}
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tabs, "FOLDER\tNAME\tVERSION\tVALUES\tSIZE\tFMR AT 7000\tTEMPLATES\tIDENTITY")
	for _, l := range list {
		if l.Err != nil {
			fmt.Fprintf(tabs, "%s\t%v\n", l.Name, l.Err)
			continue
		}
		m := l.Pack.Manifest
		fmt.Fprintf(tabs, "%s\t%s\t%s\t%d\t%s\t%.0e\t%s\t%s\n", l.Name, m.Title(), m.Version, m.Dim(),
			size(m), m.Calibration.FMR7000, m.ModelID(), l.Pack.ID[:shortID])
	}
	return tabs.Flush()
}

func size(m *models.Manifest) string {
	var sum int64
	for _, f := range m.Files {
		sum += f.Size
	}
	return fmt.Sprintf("%.1f MB", float64(sum)/1e6)
}

// Info prints a manifest. It reads no other file of the pack.
func Info(w io.Writer, dir string) error {
	p, err := Read(dir)
	if err != nil {
		return err
	}
	m := p.Manifest
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(tabs, name+"\t"+format+"\n", args...) }
	line("pack", "%s %s", m.Name, m.Version)
	line("identity", "%s", p.ID)
	line("templates", "%d values, made by model %s", m.Dim(), m.ModelID())
	if j := m.Joined; j != nil {
		line("joined", "embedders of %d and %d values, weights %g and %g, projected to %d",
			m.Embedder.Dim, j.Embedder.Dim, j.Weights[0], j.Weights[1], j.Projection.Rows)
	}
	if b := m.Embedder.Basis; b != nil {
		line("basis", "%d of the model's %d values", b.Rows, b.Cols)
	}
	if s := m.Spectrum(); s != nil {
		line("spectrum", "%s", spectrumText(s))
	}
	parts := []struct {
		name string
		in   models.Input
	}{{"detector", m.Detector.Input}, {"landmarks", m.Landmarks.Input}, {"embedder", m.Embedder.Input}}
	if m.Joined != nil {
		parts = append(parts, parts[2])
		parts[3].name, parts[3].in = "second embedder", m.Joined.Embedder.Input
	}
	for _, part := range parts {
		line(part.name, "%d × %d pixels, %s", part.in.Width, part.in.Height, part.in.Channels)
	}
	line("score 7000", "false match rate %.0e", m.Calibration.FMR7000)
	for _, point := range m.Calibration.Points {
		line("", "cosine %g has score %d", point.Cosine, point.Score)
	}
	for _, of := range m.Calibration.Subjects {
		line(fmt.Sprintf("%d photos", of.Photos), "score 7000 of the best of them and their mean: false match rate %.1e", of.FMR7000)
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ncalibration: %s\n\nquality: %s\n", m.Calibration.Data, m.Quality.Data)
	if m.OwnEvidence != nil {
		fmt.Fprintf(w, "\nevidence: %s\n", m.OwnEvidence.Data)
	}
	if m.Note != "" {
		fmt.Fprintf(w, "\nnote: %s\n", m.Note)
	}
	for _, f := range m.Files {
		fmt.Fprintf(w, "\n%s: %s, %d bytes\n  SHA-256 %s\n  licence %s\n  source  %s\n", f.Role, f.Name, f.Size, f.SHA256, f.Licence, f.Source)
	}
	return nil
}

// spectrumText formats the shares of a spectrum, summed by sixteenths of it.
func spectrumText(spectrum []float64) string {
	const parts = 16
	var text []string
	for i := range parts {
		sum := 0.
		for _, share := range spectrum[i*len(spectrum)/parts : (i+1)*len(spectrum)/parts] {
			sum += share
		}
		text = append(text, fmt.Sprintf("%.0f", 100*sum))
	}
	return strings.Join(text, " ") + " % of the norm's square, by sixteenths of the values"
}

// Check configures the verification of packs.
type Check struct {
	ONNXRuntime, SHA256 string
	// Photo is a sample photograph to extract. If it is "" or missing, none is
	// extracted.
	Photo string
}

// Verify checks the hashes of all files of a pack, loads its models and runs them
// on the sample photograph. Errors wrap ErrDamaged when the pack is to blame.
func (c Check) Verify(ctx context.Context, w io.Writer, dir string) error {
	p, err := Read(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	fmt.Fprintf(w, "%s %s (%s)\n", p.Manifest.Name, p.Manifest.Version, p.ID[:shortID])
	files, err := p.Verify()
	for _, f := range files {
		state := "intact"
		if f.Err != nil {
			state = f.Err.Error()
		}
		fmt.Fprintf(w, "  %-24s %s\n", f.File.Name, state)
	}
	if err != nil {
		return fmt.Errorf("%w: its files are not those of the manifest", ErrDamaged)
	}
	begun := time.Now()
	e, err := Source{Pack: dir, ONNXRuntime: c.ONNXRuntime, SHA256: c.SHA256, Workers: 1}.Open()
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintf(w, "  models load in %s\n", took(begun))
	return c.extract(ctx, w, e)
}

// extract runs the models on the sample photograph, the second time with warm
// caches.
func (c Check) extract(ctx context.Context, w io.Writer, e *engine.Engine) error {
	info, err := os.Stat(c.Photo)
	if c.Photo == "" || errors.Is(err, os.ErrNotExist) {
		_, err := fmt.Fprintln(w, "  there is no sample photograph to try them on")
		return err
	}
	if err == nil && info.Size() > photoBytesMax {
		err = fmt.Errorf("it has more than %d MiB", photoBytesMax>>20)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(c.Photo)
	}
	if err != nil {
		return fmt.Errorf("read the sample photograph: %w", err)
	}
	faces, err := e.Extract(ctx, data)
	if err == nil && len(faces) == 0 {
		return fmt.Errorf("%w: it finds no face on %s", ErrDamaged, filepath.Base(c.Photo))
	}
	begun := time.Now()
	if err == nil {
		faces, err = e.Extract(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("try the models: %w", err)
	}
	if s := e.Compare(faces[0].Template, faces[0].Template); s != models.MaxScore {
		return fmt.Errorf("%w: a face compared with itself scores %d", ErrDamaged, s)
	}
	_, err = fmt.Fprintf(w, "  %s: %d face(s) of quality %.2f and %d values in %s (%s)\n", filepath.Base(c.Photo), len(faces),
		faces[0].Attributes.Quality, len(faces[0].Template), took(begun), imaging.JPEGDecoder())
	return err
}

func took(begun time.Time) time.Duration { return time.Since(begun).Round(100 * time.Microsecond) }
