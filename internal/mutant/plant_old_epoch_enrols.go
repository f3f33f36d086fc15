//go:build mutant_old_epoch_enrols

package mutant

const planted = "old_epoch_enrols"
