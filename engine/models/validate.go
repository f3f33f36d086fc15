package models

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// ErrManifest is returned for bytes that are no valid manifest: no JSON of this format, or an
// invalid field. The text after it names the field.
var ErrManifest = errors.New("manifest is not valid")

// Parse parses a manifest file of at most 64 KiB. Unknown, repeated and invalid fields are errors
// that wrap ErrManifest.
func Parse(data []byte) (*Manifest, error) {
	if len(data) > maxManifestBytes {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrManifest, maxManifestBytes)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return m, nil
}

func (m *Manifest) validate() error {
	if m.Format != Format {
		return fmt.Errorf("format is %d, this binary reads %d", m.Format, Format)
	}
	if !plain(m.Name, lower+"-") {
		return fmt.Errorf("name %q is not of [a-z0-9-]", clip(m.Name))
	}
	if !plain(m.Version, lower+".-") {
		return fmt.Errorf("version %q is not of [a-z0-9.-]", clip(m.Version))
	}
	if len(m.Note) > maxTextBytes {
		return fmt.Errorf("note is longer than %d bytes", maxTextBytes)
	}
	for _, part := range []struct {
		field string
		check func() error
	}{
		{"files", m.validateFiles},
		{"detector", m.Detector.validate},
		{"landmarks", m.Landmarks.validate},
		{"embedder", m.Embedder.validate},
		{"basis", m.validateBasis},
		{"joined", m.validateJoined},
		{"pose", m.validatePose},
		{"quality", m.Quality.validate},
		{"calibration", m.Calibration.validate},
		{"evidence", m.validateEvidence},
	} {
		if err := part.check(); err != nil {
			return fmt.Errorf("%s: %w", part.field, err)
		}
	}
	return nil
}

func (m *Manifest) validateFiles() error {
	if len(m.Files) > maxFiles {
		return fmt.Errorf("more than %d", maxFiles)
	}
	roles := make(map[Role]bool)
	names := make(map[string]bool)
	var sum int64
	for i, f := range m.Files {
		if err := f.validate(); err != nil {
			return fmt.Errorf("file %d (%s): %w", i, clip(f.Name), err)
		}
		// On some file systems, two names that differ in case are one file.
		name := strings.ToLower(f.Name)
		if roles[f.Role] || names[name] {
			return fmt.Errorf("file %d: role %q or name %q is there twice", i, f.Role, f.Name)
		}
		roles[f.Role], names[name] = true, true
		sum += f.Size
	}
	if sum > maxPackBytes {
		return fmt.Errorf("%d bytes together, more than %d", sum, maxPackBytes)
	}
	for _, role := range []Role{RoleDetector, RoleLandmarks, RoleEmbedder} {
		if !roles[role] {
			return fmt.Errorf("no file of role %q", role)
		}
	}
	return nil
}

func (f *File) validate() error {
	switch f.Role {
	case RoleDetector, RoleLandmarks, RoleEmbedder, RoleBasis, RoleEmbedder2, RoleProjection, RolePose:
	default:
		return fmt.Errorf("role %q is unknown", clip(string(f.Role)))
	}
	switch {
	case !plain(f.Name, lower+upper+"._-") || f.Name[0] == '.':
		return errors.New("name is not of [A-Za-z0-9._-], or starts with a dot")
	case strings.EqualFold(f.Name, ManifestName):
		return errors.New("name is the manifest's own")
	case f.Size < 1 || f.Size > maxFileBytes:
		return fmt.Errorf("size %d is not from 1 to %d", f.Size, maxFileBytes)
	case len(f.SHA256) != 64 || !plain(f.SHA256, "0123456789abcdef"):
		return errors.New("sha256 is not 64 lower-case hex digits")
	}
	return errors.Join(text("licence", f.Licence), text("source", f.Source))
}

func (d *Detector) validate() error {
	const stride = 32 // the largest of YuNet
	switch {
	case d.Kind != KindRFB && d.Kind != KindYuNet:
		return fmt.Errorf("kind %q is unknown", clip(string(d.Kind)))
	case d.Kind == KindYuNet && (d.Input.Width%stride != 0 || d.Input.Height%stride != 0):
		return fmt.Errorf("sides of %d × %d are not multiples of %d", d.Input.Width, d.Input.Height, stride)
	}
	return errors.Join(d.Input.validate(),
		within("minScore", float64(d.MinScore), 0, 1),
		within("minTileScore", float64(d.MinTileScore), 0, 1),
		within("maxOverlap", float64(d.MaxOverlap), 0, 1),
		within("minNorm", float64(d.MinNorm), 0, maxNorm))
}

func (l *Landmarks) validate() error {
	if l.Kind != KindPoints68 {
		return fmt.Errorf("kind %q is unknown", clip(string(l.Kind)))
	}
	return errors.Join(l.Input.validate(), within("cropScale", float64(l.CropScale), .5, 3))
}

func (e *Embedder) validate() error {
	if err := e.Input.validate(); err != nil {
		return err
	}
	if e.Dim < minDim || e.Dim > maxDim {
		return fmt.Errorf("dim %d is not from %d to %d", e.Dim, minDim, maxDim)
	}
	for i, p := range e.Points {
		if p[0] < 0 || p[1] < 0 || p[0] > float32(e.Input.Width) || p[1] > float32(e.Input.Height) {
			return fmt.Errorf("point %d (%g, %g) is outside the input", i, p[0], p[1])
		}
		// Equal points define no similarity.
		if slices.Contains(e.Points[:i], p) {
			return fmt.Errorf("point %d (%g, %g) is there twice", i, p[0], p[1])
		}
	}
	return validateSpectrum(e.Spectrum, e.Dim)
}

// validateSpectrum checks a spectrum, which may be missing, of dim values.
func validateSpectrum(spectrum []float64, dim int) error {
	if spectrum == nil {
		return nil
	}
	if len(spectrum) != dim {
		return fmt.Errorf("spectrum has %d numbers, not %d", len(spectrum), dim)
	}
	sum := 0.
	for i, share := range spectrum {
		if err := within(fmt.Sprintf("spectrum number %d", i), share, 0, 1); err != nil {
			return err
		}
		sum += share
	}
	return within("spectrum's sum", sum, 1-spectrumSlack, 1+spectrumSlack)
}

func (m *Manifest) validateBasis() error {
	f, ok := m.File(RoleBasis)
	b := m.Embedder.Basis
	switch {
	case ok != (b != nil):
		return errors.New("the embedder's basis and the file of role basis need each other")
	case b == nil:
		return nil
	case b.Rows != m.Embedder.Dim || b.Cols < b.Rows || b.Cols > maxDim:
		return fmt.Errorf("%d rows and %d columns do not fit an embedder of dim %d", b.Rows, b.Cols, m.Embedder.Dim)
	case f.Size != 4*int64(b.Rows)*int64(b.Cols):
		return fmt.Errorf("file has %d bytes, not 4 × %d × %d", f.Size, b.Rows, b.Cols)
	}
	return nil
}

func (m *Manifest) validatePose() error {
	if _, ok := m.File(RolePose); ok != (m.Pose != nil) {
		return errors.New("the section and the file of role pose need each other")
	}
	if m.Pose == nil {
		return nil
	}
	return errors.Join(m.Pose.Input.validate(), within("cropScale", float64(m.Pose.CropScale), .5, 3))
}

func (in *Input) validate() error {
	n := in.Channels.Count()
	switch {
	case n == 0:
		return fmt.Errorf("channels %q are not RGB, BGR or GREY", clip(string(in.Channels)))
	case in.Width < 1 || in.Width > maxSide || in.Height < 1 || in.Height > maxSide:
		return fmt.Errorf("input of %d × %d is not from 1 to %d", in.Width, in.Height, maxSide)
	case len(in.Mean) != n || len(in.Scale) != n:
		return fmt.Errorf("mean and scale have %d and %d numbers, not %d", len(in.Mean), len(in.Scale), n)
	}
	for i := range n {
		if err := errors.Join(within("mean", float64(in.Mean[i]), 0, 255), within("scale", float64(in.Scale[i]), 1e-6, 1e3)); err != nil {
			return err
		}
	}
	return nil
}

func (q *Quality) validate() error {
	if len(q.Weights) == 0 {
		return errors.New("no weights")
	}
	for f, w := range q.Weights {
		switch f {
		case FeatureNorm, FeatureScore, FeatureSharpness, FeatureDirectionalSharpness,
			FeatureContrast, FeatureBrightness, FeatureEyeDistance, FeatureFrontal,
			FeatureIsotropy, FeatureFineness, FeatureSmear, FeatureUnevenness, FeatureClipped, FeatureDoubt:
		default:
			return fmt.Errorf("feature %q is unknown", clip(string(f)))
		}
		if err := within("weight "+string(f), w, -maxWeight, maxWeight); err != nil {
			return err
		}
	}
	return errors.Join(within("bias", q.Bias, -maxWeight, maxWeight), text("data", q.Data))
}

func (c *Calibration) validate() error {
	if err := errors.Join(validateRate(c.FMR7000), validatePoints(c.Points)); err != nil {
		return err
	}
	before := photosMin - 1
	for _, of := range c.Subjects {
		if of.Photos <= before || of.Photos > photosMax {
			return fmt.Errorf("subjects: photos %d do not rise from %d to %d", of.Photos, photosMin, photosMax)
		}
		before = of.Photos
		if err := errors.Join(validateRate(of.FMR7000), validatePoints(of.Points)); err != nil {
			return fmt.Errorf("subjects of %d photos: %w", of.Photos, err)
		}
	}
	return text("data", c.Data)
}

func validateRate(fmr7000 float64) error {
	if !(fmr7000 > 0 && fmr7000 < 1) {
		return fmt.Errorf("fmr7000 %g is not between 0 and 1", fmr7000)
	}
	return nil
}

func validatePoints(points []CalibrationPoint) error {
	n := len(points)
	if n < 3 || n > maxPoints {
		return fmt.Errorf("%d points, not from 3 to %d", n, maxPoints)
	}
	if points[0].Cosine != -1 || points[n-1].Cosine != 1 {
		return errors.New("points do not go from cosine −1 to 1")
	}
	has7000 := false
	for i, p := range points {
		has7000 = has7000 || p.Score == 7000
		switch {
		case p.Score < 0 || p.Score > MaxScore:
			return fmt.Errorf("point %d: score %d is not from 0 to %d", i, p.Score, MaxScore)
		case i > 0 && (p.Cosine <= points[i-1].Cosine || p.Score < points[i-1].Score):
			return fmt.Errorf("point %d: cosine does not rise or score falls", i)
		case p.Cosine >= SameImageCosine && p.Score != MaxScore:
			return fmt.Errorf("point %d: cosine %g has score %d, not %d", i, p.Cosine, p.Score, MaxScore)
		}
	}
	if !has7000 {
		return errors.New("no point has score 7000")
	}
	if last := points[n-2]; last.Cosine < SameImageCosine && last.Score < MaxScore {
		// The line to cosine 1 would pass SameImageCosine below MaxScore.
		return fmt.Errorf("no point gives cosine %g the score %d", SameImageCosine, MaxScore)
	}
	return nil
}

const (
	lower = "abcdefghijklmnopqrstuvwxyz0123456789"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// plain reports whether s is 1 to maxNameBytes characters out of allowed.
func plain(s, allowed string) bool {
	return s != "" && len(s) <= maxNameBytes && strings.Trim(s, allowed) == "" &&
		strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(allowed, r) }) < 0
}

// clip shortens text that an error message quotes.
func clip(s string) string {
	if len(s) > maxNameBytes {
		return s[:maxNameBytes] + "…"
	}
	return s
}

func text(field, s string) error {
	if s == "" || len(s) > maxTextBytes {
		return fmt.Errorf("%s has %d bytes, not from 1 to %d", field, len(s), maxTextBytes)
	}
	return nil
}

func within(field string, v, lo, hi float64) error {
	if math.IsNaN(v) || v < lo || v > hi {
		return fmt.Errorf("%s %g is not from %g to %g", field, v, lo, hi)
	}
	return nil
}
