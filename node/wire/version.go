package wire

import "runtime/debug"

// Version is the software's version, the first heading of CHANGELOG.md. "make version" writes it.
const Version = "0.4.0-dev"

// commit is the commit from which a release was built. The linker sets it: Go notes commits only
// where it knows the folder as a clone, and packages must not depend on that.
var commit string

// Revision returns the commit from which this program was built, or "" when it is unknown.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if commit != "" || !ok {
		return commit
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
