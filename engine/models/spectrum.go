package models

import "slices"

// measured are the spectra, in hundred-thousandths, of the packs that the set-up installs, by the
// model of their templates. They are not in the manifests, because a manifest's bytes are the
// identity of a pack that clusters were founded with.
var measured = map[string][]int{
	// LFW, folds 1-5, grey copy, 5,371 faces.
	"ac20abbb30a703e3": {
		1223, 1063, 1093, 1023, 948, 909, 974, 800, 945, 980, 836, 959, 769, 833, 777, 1082,
		849, 931, 863, 786, 944, 1027, 945, 808, 820, 815, 968, 646, 914, 866, 877, 865,
		777, 697, 659, 730, 799, 896, 889, 684, 757, 647, 712, 756, 938, 694, 724, 768,
		703, 779, 727, 770, 665, 689, 663, 614, 667, 673, 607, 608, 718, 724, 643, 833,
		765, 765, 652, 689, 720, 637, 647, 703, 675, 613, 633, 640, 685, 603, 597, 715,
		639, 778, 611, 645, 655, 742, 698, 701, 554, 668, 534, 590, 565, 600, 560, 700,
		691, 683, 600, 629, 525, 587, 505, 648, 646, 560, 644, 508, 548, 481, 489, 563,
		511, 647, 567, 734, 656, 516, 576, 863, 663, 540, 680, 607, 576, 513, 670, 574,
		484, 549, 530, 451, 473, 468, 479, 439, 418, 406, 541, 509, 273, 411, 229, 156,
		151, 154, 70, 75, 48, 35, 33, 17, 16, 9, 9, 4, 5, 4, 3, 3,
		2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	},
}

// Spectrum returns the share of a template's squared norm that each of its values has. It comes
// from the manifest, or from an earlier measurement of the same model (ModelID), or is nil. The
// caller may change it.
func (m *Manifest) Spectrum() []float64 {
	if m.Joined != nil {
		return slices.Clone(m.Joined.Spectrum)
	}
	if s := m.Embedder.Spectrum; s != nil {
		return slices.Clone(s)
	}
	shares := measured[m.ModelID().String()]
	if shares == nil {
		return nil
	}
	s := make([]float64, len(shares))
	for i, n := range shares {
		s[i] = float64(n) / 1e5
	}
	return s
}
