// Package mutant plants bugs, to show that the tests find them. Each bug is a
// constant that is false, and the compiler drops the code that depends on it. Built
// with -tags mutant they are variables, and the bug that the environment variable
// Variable names is active. docs/benchmarks lists the bugs with their hunters;
// scripts/chaos -mutants runs them.
//
// The package imports nothing of this module.
package mutant

// Variable is the environment variable that names the bug; empty is none.
const Variable = "FACET_MUTANT"
