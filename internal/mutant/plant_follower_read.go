//go:build mutant_follower_read

package mutant

const planted = "follower_read"
