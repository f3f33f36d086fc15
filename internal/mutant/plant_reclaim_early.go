//go:build mutant_reclaim_early

package mutant

const planted = "reclaim_early"
