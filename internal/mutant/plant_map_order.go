//go:build mutant_map_order

package mutant

const planted = "map_order"
