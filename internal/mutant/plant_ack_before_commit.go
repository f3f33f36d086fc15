//go:build mutant_ack_before_commit

package mutant

const planted = "ack_before_commit"
