//go:build mutant_foreign_gallery

package mutant

const planted = "foreign_gallery"
