package accuracy

import (
	"cmp"
	"slices"
)

// Discard is a point of an error-versus-discard curve (ISO/IEC 29794-1): the FNMR that remains when
// the pairs of the lowest quality are not compared.
type Discard struct {
	// Share is the part of the mated pairs that was discarded.
	Share float64 `json:"discarded"`
	// Quality is the lowest quality that was kept. A pair has that of its worse photograph.
	Quality float64 `json:"qualityMin"`
	FNMR    Rate    `json:"fnmr"`
}

// discardSteps is the number of points, evenly spaced from none to nearly all.
const discardSteps = 20

// discard returns the curve at a threshold. Pairs of equal quality are kept or discarded together,
// so the shares may be a little below the even ones.
func (e *Evidence) discard(threshold int) []Discard {
	all := slices.Clone(e.mated)
	slices.SortFunc(all, func(a, b matedTrial) int { return cmp.Compare(a.quality, b.quality) })
	var left int64 // rejected pairs that are not yet discarded
	for _, m := range all {
		if int(m.score) < threshold {
			left++
		}
	}
	var curve []Discard
	from := 0
	for step := range discardSteps {
		i := len(all) * step / discardSteps
		if i == len(all) {
			break // there are none
		}
		for ; all[from].quality < all[i].quality; from++ {
			if int(all[from].score) < threshold {
				left--
			}
		}
		curve = append(curve, Discard{
			Share:   float64(from) / float64(len(all)),
			Quality: float64(all[from].quality) / 65535,
			FNMR:    Share(left, int64(len(all)-from)),
		})
	}
	return slices.CompactFunc(curve, func(a, b Discard) bool { return a.Share == b.Share })
}
