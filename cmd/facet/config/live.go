package config

import (
	"reflect"
	"slices"
)

// Live lists the settings that a running node takes over on SIGHUP.
var Live = []string{
	"log-level", "health", "console", "signature-forms", "must-sign", "cors",
	"rate-tenant", "rate-tenant-burst", "rate-application", "rate-application-burst",
	"memory", "disk-reserve", "rebuild-after", "backup-every", "backup-keep", "traces-ratio",
}

// Over returns s with the live settings of next, the names of those that differ, and the names of the
// other settings in which s and next differ: they wait for the node's next start.
func (s Settings) Over(next Settings) (now Settings, changed, waiting []string) {
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(next)
	for i := range to.NumField() {
		name := to.Type().Field(i).Tag.Get("koanf")
		switch {
		case name == "-" || reflect.DeepEqual(to.Field(i).Interface(), from.Field(i).Interface()):
		case slices.Contains(Live, name):
			to.Field(i).Set(from.Field(i))
			changed = append(changed, name)
		default:
			waiting = append(waiting, name)
		}
	}
	return s, changed, waiting
}
