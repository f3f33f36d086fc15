//go:build mutant_tags_ignored

package mutant

const planted = "tags_ignored"
