//go:build mutant_no_term_entry

package mutant

const planted = "no_term_entry"
