//go:build mutant_any_tenant

package mutant

const planted = "any_tenant"
