//go:build mutant_ops_not_in_snapshot

package mutant

const planted = "ops_not_in_snapshot"
