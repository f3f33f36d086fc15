//go:build mutant_removed_stays

package mutant

const planted = "removed_stays"
