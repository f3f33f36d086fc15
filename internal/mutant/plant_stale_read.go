//go:build mutant_stale_read

package mutant

const planted = "stale_read"
