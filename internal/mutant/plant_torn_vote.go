//go:build mutant_torn_vote

package mutant

const planted = "torn_vote"
