//go:build mutant_clock_back

package mutant

const planted = "clock_back"
