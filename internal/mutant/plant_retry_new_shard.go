//go:build mutant_retry_new_shard

package mutant

const planted = "retry_new_shard"
