// Package accuracy computes how often a face engine is wrong: the rates of ISO/IEC 19795-1 with
// their uncertainty, from scores alone. It knows no model and no image: the caller passes Samples
// and a Compare function.
//
// A comparison matches when its score is at or above the threshold. The rates are:
//
//	FMR, FNMR   false match rate of non-mated, false non-match rate of mated
//	            comparisons of photographs that have a face (1:1)
//	FTA         failure to acquire: photographs in which no face is found
//	GFAR, GFRR  FMR and FNMR over all pairs; a pair with a photograph without a
//	            face counts as not matched
//	DET, EER    the curve (FMR, FNMR) over all thresholds; where the two are equal
//	FPIR, FNIR  searches of a gallery without the mate that return a candidate, and
//	            searches with the mate that do not return it (1:N)
//
// Comparisons of one person are not independent, so intervals come from resampling persons (see
// resample.go). Scores are integers, 0 to 9999, so two histograms hold a whole experiment, ties
// included.
//
// It may import engine/score and nothing else of facet.
package accuracy
