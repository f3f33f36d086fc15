//go:build mutant_wide_window

package mutant

const planted = "wide_window"
