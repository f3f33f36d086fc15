package httpapi

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"facet/internal/answers"
	"facet/router"
)

// externalPrefix is what a client writes before an external id in the place of a subject's id. The
// prefix does not count in the length of the id.
const externalPrefix = "externalId:"

// userDataRawMax is the most bytes of user data with white space.
const userDataRawMax = 8 * router.UserDataMax

// notePatch reads the members externalId and userData, both optional. A string or object
// that is empty asks for a removal.
func (o object) notePatch() (router.NotePatch, error) {
	var p router.NotePatch
	external, ok, err := o.text("externalId", router.ExternalIDMax)
	if err == nil && external != "" {
		err = checkTagName("externalId", external)
	}
	if err != nil {
		return p, err
	}
	if ok {
		p.ExternalID = &external
	}
	data, ok, err := o.userData()
	if ok {
		p.UserData = &data
	}
	return p, err
}

// note reads the members externalId and userData of a new subject.
func (o object) note() (n router.Note, err error) {
	p, err := o.notePatch()
	switch {
	case err != nil:
		return n, err
	case p.ExternalID != nil && *p.ExternalID == "":
		return n, invalid("", "externalId must not be empty; leave it out for a subject without one.")
	case p.ExternalID != nil:
		n.ExternalID = *p.ExternalID
	}
	if p.UserData != nil {
		n.UserData = *p.UserData
	}
	return n, nil
}

// userData reads the member userData, an object, without white space between its tokens. An
// empty object becomes empty data.
func (o object) userData() (data []byte, ok bool, err error) {
	raw, ok := o["userData"]
	if !ok {
		return nil, false, nil
	}
	if raw.Kind() != '{' {
		return nil, false, invalid("", "userData must be a JSON object.")
	}
	tooLarge := invalid("", fmt.Sprintf("userData must be at most %d bytes of JSON.", router.UserDataMax))
	if len(raw) > userDataRawMax {
		return nil, false, tooLarge
	}
	compact := raw.Clone()
	if err := compact.Compact(); err != nil {
		return nil, false, malformed(err)
	}
	if len(compact) > router.UserDataMax {
		return nil, false, tooLarge
	}
	d := &boundedDecoder{Decoder: jsontext.NewDecoder(bytes.NewReader(compact)), left: jsonTokensMax}
	if err := d.skip(); err != nil { // it nests too deep
		return nil, false, malformed(err)
	}
	if len(compact) == len("{}") {
		return []byte{}, true, nil
	}
	return compact, true, nil
}

// wireNote returns the wire form of n, which may be nil.
func wireNote(n *router.Note) answers.Note {
	if n == nil {
		return answers.Note{}
	}
	return answers.Note{ExternalID: n.ExternalID, UserData: n.UserData}
}

// note returns the wire form of n, which may be nil. Version 1 has no notes.
func (c *call) note(n *router.Note) answers.Note {
	if c.version == v1 {
		return answers.Note{}
	}
	return wireNote(n)
}

// idText reads the member id. The prefix of an external id does not count in its length.
func (c *call) idText(o object) (string, error) {
	if c.version != v1 {
		text, _, err := o.text("id", len(externalPrefix)+router.ExternalIDMax)
		if err == nil && strings.HasPrefix(text, externalPrefix) {
			return text, nil
		}
	}
	text, _, err := o.text("id", pathIDMax)
	return text, err
}

// checkTagName returns an error when a tag may not have this name (D31). field is
// the place of the name, for the error. name is UTF-8.
func checkTagName(field, name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return invalid("", field+" must not be empty.")
	case n > tagMax:
		return invalid("", fmt.Sprintf("%s must be at most %d characters.", field, tagMax))
	case name == "." || name == "..":
		// Many clients and proxies remove such segments from a path.
		return invalid("", field+` must not be "." or "..".`)
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("", field+" must have no control characters.")
	case !norm.NFC.IsNormalString(name):
		return invalid("", field+" must be in Unicode's normalisation form C.")
	}
	return nil
}
