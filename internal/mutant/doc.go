// Package mutant plants bugs, so that it can be shown that the tests find them. Each
// is a constant that is false unless facet is built with -tags mutant,mutant_NAME;
// the compiler then drops what hangs on it. docs/chaos.md lists them with what finds
// them; scripts/chaos -mutants builds each and shows it.
//
// The package imports nothing of this module.
package mutant
