package models

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Joined describes the second embedder of a pack that has two, and how a template is made of both.
// Each embedder's output is normalised to unit length and multiplied by its weight; with Mirrored,
// the output is the sum of those for the crop and for the mirrored crop. The projection
// reduces the two vectors, one behind the other, to Projection.Rows values, which are normalised
// again. A face's norm is that of the first embedder's output for the crop, and its quality is
// measured on the first embedder's crop.
type Joined struct {
	// Embedder is the second embedder, the file of role embedder2. It has no basis.
	Embedder Embedder `json:"embedder"`
	// Weights are those of the first and the second embedder, from .001 to 1000.
	Weights    [2]float32 `json:"weights"`
	Mirrored   bool       `json:"mirrored,omitzero"`
	Projection Projection `json:"projection"`
	// Spectrum is that of the templates; see Embedder.Spectrum. The embedders have none.
	Spectrum []float64 `json:"spectrum,omitempty"`
}

// Projection describes the file of role projection. Cols is the number of values of both embedders
// together, Rows that of a template.
type Projection struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

const (
	leastWeight, mostWeight = .001, 1000

	projectionMagic   = "facetprj"
	projectionVersion = 1
	projectionHead    = int64(len(projectionMagic)) + 3*4
	// mostFactor is the largest magnitude of a projection's number.
	mostFactor = 1e3
	// leastRow is the least length of a projection's row.
	leastRow = 1e-3
)

// ErrProjection is returned for bytes that are no projection. The text after it says why.
var ErrProjection = errors.New("projection is not valid")

// Dim returns the number of values of a template.
func (m *Manifest) Dim() int {
	if m.Joined != nil {
		return m.Joined.Projection.Rows
	}
	return m.Embedder.Dim
}

func (m *Manifest) validateJoined() error {
	second, ok := m.File(RoleEmbedder2)
	projection, both := m.File(RoleProjection)
	j := m.Joined
	switch {
	case ok != (j != nil) || both != ok:
		return fmt.Errorf("the section and the files of roles %q and %q need each other", RoleEmbedder2, RoleProjection)
	case j == nil:
		return nil
	case second.SHA256 == m.sha256(RoleEmbedder):
		return errors.New("both embedders are the same file")
	}
	if err := j.Embedder.validate(); err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	p := j.Projection
	switch {
	case j.Embedder.Basis != nil:
		return errors.New("the second embedder has a basis")
	case j.Embedder.Spectrum != nil || m.Embedder.Spectrum != nil:
		return errors.New("an embedder has a spectrum: it belongs to the section joined")
	case p.Cols != m.Embedder.Dim+j.Embedder.Dim:
		return fmt.Errorf("projection of %d columns does not fit embedders of %d and %d values", p.Cols, m.Embedder.Dim, j.Embedder.Dim)
	case p.Rows < minDim || p.Rows > maxDim || p.Rows > p.Cols:
		return fmt.Errorf("projection of %d rows is not from %d to %d", p.Rows, minDim, min(maxDim, p.Cols))
	case projection.Size != p.Size():
		return fmt.Errorf("projection file has %d bytes, not %d + 4 × %d × %d", projection.Size, projectionHead, p.Rows, p.Cols)
	}
	return errors.Join(
		within("first weight", float64(j.Weights[0]), leastWeight, mostWeight),
		within("second weight", float64(j.Weights[1]), leastWeight, mostWeight),
		validateSpectrum(j.Spectrum, p.Rows))
}

// sha256 returns the SHA-256 of the file of a role, or "" without one.
func (m *Manifest) sha256(role Role) string {
	f, _ := m.File(role)
	return f.SHA256
}

// Size returns the size of the file in bytes.
func (p Projection) Size() int64 { return projectionHead + 4*int64(p.Rows)*int64(p.Cols) }

// Encode returns the file of a projection with these values, row after row.
func (p Projection) Encode(values []float32) []byte {
	if len(values) != p.Rows*p.Cols {
		panic("bug: projection has another number of values")
	}
	b := append(make([]byte, 0, p.Size()), projectionMagic...)
	for _, n := range []int{projectionVersion, p.Rows, p.Cols} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return appendFloats(b, values...)
}

// Decode returns the values of a projection's file, row after row. The error wraps ErrProjection if
// the file has other dimensions, a number that is not finite or too large, or a row of zeros.
func (p Projection) Decode(file []byte) ([]float32, error) {
	head, ok := bytes.CutPrefix(file, []byte(projectionMagic))
	if !ok || int64(len(file)) < projectionHead {
		return nil, fmt.Errorf("%w: it does not start as one", ErrProjection)
	}
	version, rows, cols := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	switch {
	case version != projectionVersion:
		return nil, fmt.Errorf("%w: version is %d, this binary reads %d", ErrProjection, version, projectionVersion)
	case int64(rows) != int64(p.Rows) || int64(cols) != int64(p.Cols):
		return nil, fmt.Errorf("%w: it has %d rows and %d columns, the manifest says %d and %d", ErrProjection, rows, cols, p.Rows, p.Cols)
	case int64(len(file)) != p.Size():
		return nil, fmt.Errorf("%w: it has %d bytes, not %d", ErrProjection, len(file), p.Size())
	}
	data := file[projectionHead:]
	values := make([]float32, len(data)/4)
	for r := range p.Rows {
		var squares float64
		row := values[r*p.Cols:][:p.Cols]
		for c := range row {
			row[c] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(r*p.Cols+c):]))
			x := float64(row[c])
			if !(math.Abs(x) <= mostFactor) {
				return nil, fmt.Errorf("%w: row %d has the number %g", ErrProjection, r, x)
			}
			squares += float64(x * x)
		}
		if squares < leastRow*leastRow {
			return nil, fmt.Errorf("%w: row %d is nearly zero", ErrProjection, r)
		}
	}
	return values, nil
}

// Apply returns the product of a projection's values, row after row, and both embedders' values.
func (p Projection) Apply(values, both []float32) []float32 {
	out := make([]float32, p.Rows)
	for r := range out {
		var sum float64
		for c, v := range values[r*p.Cols:][:p.Cols] {
			sum += float64(v) * float64(both[c]) // exact products: fusing changes nothing
		}
		out[r] = float32(sum)
	}
	return out
}

// Projection returns the values of the pack's projection, row after row. It returns nil if the pack
// has one embedder or is open without its projection. Errors wrap ErrPack, or come from the file
// system.
func (p *Pack) Projection() ([]float32, error) {
	if p.Manifest.Joined == nil || p.whole {
		return nil, nil
	}
	file, err := p.Load(RoleProjection)
	if err != nil {
		return nil, err
	}
	values, err := p.Manifest.Joined.Projection.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("load projection of model pack: %w: %w", ErrPack, err)
	}
	return values, nil
}

// OpenWhole is Open for a pack with two embedders whose projection is to be fitted. The pack's
// templates have the values of both embedders, Projection.Cols, and the file of role projection may
// be missing. The pack has no identity. Errors are those of Open, or wrap ErrManifest if the pack
// has one embedder.
func OpenWhole(dir string) (*Pack, error) {
	p, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if p.Manifest.Joined == nil {
		return nil, fmt.Errorf("open model pack: %w: it has one embedder, and so no projection", ErrManifest)
	}
	joined := *p.Manifest.Joined
	joined.Projection.Rows, joined.Spectrum = joined.Projection.Cols, nil
	p.Manifest.Joined, p.ID, p.whole = &joined, "", true
	if err := p.checkAll(nil); err != nil {
		return nil, err
	}
	return p, nil
}
