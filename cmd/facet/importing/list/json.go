package list

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ignoredMax is how many names of members that are not read are kept for the note.
const ignoredMax = 20

// object is a line of a list of JSON objects.
type object struct {
	ExternalID  string                    `json:"external_id"`
	ExternalID2 string                    `json:"externalId"`
	File        string                    `json:"file"`
	Filename    string                    `json:"filename"`
	Tags        jsontext.Value            `json:"tags"`
	UserData    jsontext.Value            `json:"user_data"`
	UserData2   jsontext.Value            `json:"userData"`
	Expires     string                    `json:"expires"`
	Rest        map[string]jsontext.Value `json:",inline"`
}

// readObject returns the row of a line. blank reports that the line has no content.
// ignored gets the names of members that are not read.
func readObject(line []byte, ignored map[string]bool) (r Row, blank bool) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return r, true
	}
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		return Row{Err: inWords(err)}, false
	}
	for name := range o.Rest {
		if len(ignored) < ignoredMax {
			ignored[name] = true
		}
	}
	var err1, err2, err4 error
	r.ExternalID, err1 = either(o.ExternalID, o.ExternalID2, "external_id")
	r.File, err2 = either(o.File, o.Filename, "file")
	data, err3 := either(given(o.UserData), given(o.UserData2), "user_data")
	r.setUserData(data)
	err4 = readTags(&r, o.Tags)
	if r.Err = errors.Join(err1, err2, err3, err4, r.setExpires(o.Expires)); r.Err == nil {
		r.check()
	}
	return r, false
}

// readTags reads an array of names, or a text with semicolons.
func readTags(r *Row, v jsontext.Value) error {
	switch v.Kind() {
	case jsontext.KindBeginArray:
		if err := json.Unmarshal(v, &r.Tags); err != nil {
			r.Tags = nil
			return errors.New("tags has something that is not a text")
		}
	case jsontext.KindString:
		var text string
		if err := json.Unmarshal(v, &text); err != nil {
			return inWords(err)
		}
		r.setTags(text)
	case jsontext.KindNull, jsontext.KindInvalid: // absent
	default:
		return errors.New("tags is neither a list of texts nor a text")
	}
	return nil
}

// given returns the text of a member, or nothing for null.
func given(v jsontext.Value) string {
	if v.Kind() == jsontext.KindNull {
		return ""
	}
	return string(v)
}

func either(a, b, name string) (string, error) {
	if a != "" && b != "" {
		return "", fmt.Errorf("the row has %s in two spellings", name)
	}
	return a + b, nil
}

// inWords returns an error of the decoder as a sentence.
func inWords(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		if wrong.JSONPointer == "" {
			return errors.New("the line is not a JSON object")
		}
		return fmt.Errorf("%s is not a text", strings.TrimPrefix(string(wrong.JSONPointer), "/"))
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return errors.New("a member of the line's object occurs twice")
	}
	return errors.New("the line is not one JSON object: each row is one object on one line")
}

// names returns the names of ignored in order.
func names(ignored map[string]bool) []string { return slices.Sorted(maps.Keys(ignored)) }
