//go:build mutant_body_ignored

package mutant

const planted = "body_ignored"
