//go:build mutant_restore_merges

package mutant

const planted = "restore_merges"
