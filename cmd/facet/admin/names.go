package admin

import (
	"regexp"
	"strings"

	"facet/node/wire"
)

// nodeID is the id of a node, or of its member with the epoch.
var nodeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.[0-9a-f]{8})?`)

// named returns a text with names in place of the ids of nodes. Nodes that share a name keep
// their ids.
func named(text string, s wire.Status) string {
	byID := map[string]string{}
	count := map[string]int{}
	for _, n := range s.Nodes {
		byID[n.ID.String()] = n.Name
		count[n.Name]++
	}
	text = nodeID.ReplaceAllStringFunc(text, func(id string) string {
		bare, _, _ := strings.Cut(id, ".")
		if name := byID[bare]; name != "" && count[name] == 1 {
			return name
		}
		return id
	})
	for name := range count {
		text = strings.ReplaceAll(text, name+" ("+name+")", name) // "node n1 (ID)"
	}
	return text
}
