//go:build mutant_unsigned_header

package mutant

const planted = "unsigned_header"
