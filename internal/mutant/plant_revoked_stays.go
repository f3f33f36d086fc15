//go:build mutant_revoked_stays

package mutant

const planted = "revoked_stays"
