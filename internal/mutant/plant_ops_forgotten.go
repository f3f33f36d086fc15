//go:build mutant_ops_forgotten

package mutant

const planted = "ops_forgotten"
