//go:build mutant_stale_log

package mutant

const planted = "stale_log"
