//go:build mutant_sync_failure_ignored

package mutant

const planted = "sync_failure_ignored"
