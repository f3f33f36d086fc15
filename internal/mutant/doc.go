// Package mutant plants bugs, so that it can be shown that the tests find them. Each
// is a constant that is false; the compiler drops what hangs on it. Built with -tags
// mutant they are variables, and the bug that the environment names (Variable) is
// there. docs/benchmarks lists them with their hunters; scripts/chaos -mutants shows
// it.
//
// The package imports nothing of this module.
package mutant

// Variable is the environment variable that names the bug; empty is none.
const Variable = "FACET_MUTANT"
