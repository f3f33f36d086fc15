//go:build mutant_stall_ignored

package mutant

const planted = "stall_ignored"
