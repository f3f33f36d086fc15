//go:build mutant_skip_dead_shard

package mutant

const planted = "skip_dead_shard"
