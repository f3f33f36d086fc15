package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"facet/internal/must"
)

// What follows from the settings and the answers is committed.
func TestFilesFollowFromStructs(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	made, err := generated(root)
	must.Do(t, err)
	for name, want := range made {
		if got, err := os.ReadFile("../../" + name); err != nil || string(got) != want {
			t.Errorf("%s is out of date: run make describe; %v", name, err)
		}
	}
}

// doors returns the answers of a package with one struct, whose field has a comment, a type and tags.
func doors(doc, field string) ([]answer, error) {
	source := "package answers\n\n" + doc + "\ntype Door struct {\n" + field + "\n}\n\n// Room is a room.\ntype Room struct {\n\tFloorArea int `json:\"floorArea\"`\n}\n"
	return readAnswers(fstest.MapFS{answersFolder + "/door.go": {Data: []byte(source)}})
}

// Comments name fields as each language does, and say what it has for an absent one.
func TestCommentsAreSpelledAsLanguagesDo(t *testing.T) {
	t.Parallel()
	all, err := doors("// Door is a door, which LastKey opens with photoLink.", "\t// Who came. Absent if LastKey is new.\n\tLastKey string `json:\"lastKey,omitzero\" schema:\"enum=LastKey|b\"`")
	must.Do(t, err)
	door := all[0]
	for language, want := range map[string]string{
		"go":     "Door is a door, which LastKey opens with PhotoLink. Who came. Empty if LastKey is new. One of \"LastKey\", \"b\".",
		"python": "A door, which last_key opens with photo_link. Who came. Empty if last_key is new. One of \"LastKey\", \"b\".",
		"js":     "A door, which lastKey opens with photoLink. Who came. Absent if lastKey is new. One of \"LastKey\", \"b\".",
		"json":   "A door, which lastKey opens with photoLink. Who came. Absent if lastKey is new.",
	} {
		if got := door.Text(language) + " " + door.TextOf(door.Fields[0], language); got != want {
			t.Errorf("%s: %s\nwant %s", language, got, want)
		}
	}
	const want = `"lastKey": {"enum": ["LastKey", "b"], "description": "Who came. Absent if lastKey is new."}`
	if got := door.property(door.Fields[0]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestWrongStructsAreNamed(t *testing.T) {
	t.Parallel()
	const doc, field = "// Door is a door.", "\tKey ID `json:\"key\"`"
	f := func(doc, field, want string) {
		t.Helper()
		if _, err := doors(doc, field); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f(doc, field, "")
	f("", field, "no comment")
	f(doc+"\n//\n//facet:old", field, "not known")
	f(doc, "\tKey ID", "a tag of its own")
	f(doc, "\tKey, Lock ID `json:\"key\"`", "a line")
	f(doc, "\tKey Lock `json:\"key\"`", `type "Lock" is not known`)
	f(doc, "\tKey map[string]ID `json:\"key\"`", "MapType")
	f(doc, "\tKey ID `json:\"key\" schema:\"most=1\"`", `unknown tag "most=1"`)
	f(doc, "\tKey string `json:\"key\" schema:\"enum=a max=1\"`", "no bounds")
	f("// Door is a door. It has a FloorArea.", field, "FloorArea")
	f(doc, "\tRoom\n\tNext Room `json:\"next\"`", "own")
}
