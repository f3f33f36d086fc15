//go:build mutant_clock_in_fsm

package mutant

const planted = "clock_in_fsm"
