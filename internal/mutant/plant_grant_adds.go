//go:build mutant_grant_adds

package mutant

const planted = "grant_adds"
