//go:build mutant_seal_ignored

package mutant

const planted = "seal_ignored"
