//go:build mutant_fences_lost

package mutant

const planted = "fences_lost"
