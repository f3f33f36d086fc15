//go:build mutant_fence_open

package mutant

const planted = "fence_open"
