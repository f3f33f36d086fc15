//go:build mutant_update_loses_old

package mutant

const planted = "update_loses_old"
