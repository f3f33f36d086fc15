//go:build mutant_no_sync

package mutant

const planted = "no_sync"
