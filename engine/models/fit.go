package models

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fit holds the measured parts of a manifest. A nil part leaves that part of the manifest
// unchanged.
type Fit struct {
	Calibration *Calibration
	Quality     *Quality
	// Spectrum belongs to the section embedder, or joined if there is one.
	Spectrum []float64
	Evidence *Evidence
	// MinNorm belongs to the detector.
	MinNorm *float64
}

// Refit returns the manifest with the parts of the fit; every other byte stays the same. It checks
// the result as Parse does; errors wrap ErrManifest.
func Refit(manifest []byte, fit Fit) ([]byte, error) {
	if _, err := Parse(manifest); err != nil {
		return nil, fmt.Errorf("refit: %w", err)
	}
	out := manifest
	for _, part := range []struct {
		field string
		value any
		set   bool
	}{
		{"quality", fit.Quality, fit.Quality != nil},
		{"calibration", fit.Calibration, fit.Calibration != nil},
	} {
		if !part.set {
			continue
		}
		text, err := manifestText(part.value)
		if err != nil {
			return nil, fmt.Errorf("refit %s: %w: %w", part.field, ErrManifest, err)
		}
		from, to, err := valueOf(out, part.field)
		if err != nil {
			return nil, fmt.Errorf("refit %s: %w: %w", part.field, ErrManifest, err)
		}
		out = bytes.Join([][]byte{out[:from], text, out[to:]}, nil)
	}
	if fit.Spectrum != nil {
		var err error
		if out, err = putSpectrum(out, fit.Spectrum); err != nil {
			return nil, fmt.Errorf("refit spectrum: %w: %w", ErrManifest, err)
		}
	}
	out, err := putFaces(out, fit)
	if err != nil {
		return nil, fmt.Errorf("refit evidence: %w: %w", ErrManifest, err)
	}
	if _, err := Parse(out); err != nil {
		return nil, fmt.Errorf("refit: %w", err)
	}
	return out, nil
}

// putSpectrum writes a spectrum into the section joined of a valid manifest, or embedder without
// one, sixteen numbers a line. It replaces the present spectrum or becomes the last member.
func putSpectrum(manifest []byte, spectrum []float64) ([]byte, error) {
	const perLine = 16
	text := []byte("[")
	for i, share := range spectrum {
		if i > 0 {
			text = append(text, ',')
		}
		if text = append(text, ' '); i%perLine == 0 {
			text = append(text[:len(text)-1], "\n      "...)
		}
		text = strconv.AppendFloat(text, share, 'f', -1, 64)
	}
	text = append(text, "\n    ]"...)
	from, to, err := valueOf(manifest, "joined")
	if err != nil {
		from, to, err = valueOf(manifest, "embedder")
	}
	if err != nil {
		return nil, err
	}
	section := manifest[from:to]
	if at, end, err := valueOf(section, "spectrum"); err == nil {
		from, to = from+at, from+end
	} else {
		head := bytes.TrimRight(section[:len(section)-1], " \t\r\n")
		text = slices.Concat([]byte(",\n    \"spectrum\": "), text)
		from += int64(len(head))
		to = from
	}
	return slices.Concat(manifest[:from], text, manifest[to:]), nil
}

// valueOf finds the value of a field in data, a valid JSON object.
func valueOf(data []byte, field string) (from, to int64, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := d.ReadToken(); err != nil {
		return 0, 0, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return 0, 0, err
		}
		found := name.String() == field
		value, err := d.ReadValue()
		if err != nil {
			return 0, 0, err
		}
		if found {
			to = d.InputOffset()
			return to - int64(len(value)), to, nil
		}
	}
	return 0, 0, fmt.Errorf("there is no %q", field)
}

// pointText matches a calibration point.
var pointText = regexp.MustCompile(`\{\s*"cosine":\s*([^,\s]+),\s*"score":\s*(\d+)\s*\}`)

// manifestText returns the JSON of a section in the layout of this package's manifests: a field a
// line, indented as a member of the whole, each calibration point on one line.
func manifestText(section any) ([]byte, error) {
	text, err := json.Marshal(section, json.Deterministic(true), jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return pointText.ReplaceAll(text, []byte(`{"cosine":$1,"score":$2}`)), nil
}
