package admin

import "maps"

// Patterns returns the patterns of the requests that need a certificate.
func (p *Port) Patterns() (list []string) {
	for pattern := range maps.Keys(certified(p)) {
		list = append(list, pattern)
	}
	return list
}
