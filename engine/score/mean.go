package score

import "math"

// PhotosMin is the least number of templates that have a mean. Means of PhotosMin, PhotosMin+1, … up
// to PhotosMax, which stands for more, are kinds of their own: the mean of more photos is more like
// everybody.
const (
	PhotosMin = 2
	PhotosMax = 4
	// Kinds is the number of kinds of means.
	Kinds = PhotosMax - PhotosMin + 1
)

// Kind returns the kind, 0 … Kinds−1, of a mean of so many templates, PhotosMin or more.
func Kind(photos int) int { return min(photos, PhotosMax) - PhotosMin }

// Mean sums templates up. The zero value is an empty sum.
//
// Add and Unit use +, × and ÷ of float64 and its square root in a fixed order, each rounded by
// itself. So the same templates in the same order have the same mean on every processor.
type Mean struct {
	sum []float64
	n   int
}

// Add adds a template. It panics if an earlier one has another length.
func (m *Mean) Add(template []float32) {
	if m.n == 0 {
		m.sum = make([]float64, len(template))
	}
	if len(template) != len(m.sum) {
		panic("bug: score: mean of templates of two lengths")
	}
	for i, x := range template {
		m.sum[i] += float64(x)
	}
	m.n++
}

// Len returns the number of templates.
func (m *Mean) Len() int { return m.n }

// Dim returns the length of the templates, or 0 before the first.
func (m *Mean) Dim() int { return len(m.sum) }

// Unit returns the mean, scaled to unit norm. Templates that cancel each other out have a mean of
// zeros.
func (m *Mean) Unit() []float32 {
	var square float64
	for _, x := range m.sum {
		// The conversion forbids a fused multiply-add, which rounds once less.
		square += float64(x * x)
	}
	unit := make([]float32, len(m.sum))
	norm := math.Sqrt(square)
	if norm == 0 {
		return unit
	}
	for i, x := range m.sum {
		unit[i] = float32(x / norm)
	}
	return unit
}

// Clear zeroes the sum and empties it.
func (m *Mean) Clear() {
	clear(m.sum)
	m.sum, m.n = nil, 0
}
