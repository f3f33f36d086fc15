package models

import (
	"fmt"
	"strings"
)

// NoticeName is the name of the file in a pack's folder with its Notice.
const NoticeName = "NOTICE"

// Notice returns a text for people: where each file of the pack comes from and under which licence,
// and what is known of it.
func (m *Manifest) Notice() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The face models of facet's pack %s, version %s.\n\n%s\n", m.Title(), m.Version, m.Note)
	for _, f := range m.Files {
		fmt.Fprintf(&b, "\n%s (%s)\n  licence: %s\n  source:  %s\n", f.Name, f.Role, f.Licence, f.Source)
	}
	b.WriteString("\nThe licences of the packages lie beside this file. The Apache License 2.0 is in facet's own LICENSE\n" +
		"and at https://www.apache.org/licenses/LICENSE-2.0\n")
	return b.String()
}
