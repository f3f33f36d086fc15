package node

import "context"

// OpenTelling is Open that tells the name of each part before it starts it.
func OpenTelling(ctx context.Context, cfg Config, starts func(name string)) (*Node, error) {
	return open(ctx, cfg, starts)
}

// PartNames returns the names of the parts in the order of their start.
func PartNames() []string {
	var list []string
	for _, p := range parts {
		list = append(list, p.name)
	}
	return list
}
