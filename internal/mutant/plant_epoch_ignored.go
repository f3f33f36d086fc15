//go:build mutant_epoch_ignored

package mutant

const planted = "epoch_ignored"
