package httpapi

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"facet/router"
)

func TestUserDataIsBounded(t *testing.T) {
	t.Parallel()
	f := func(text, want string, ok bool) {
		t.Helper()
		got, _, err := object{"userData": jsontext.Value(text)}.userData()
		if (err == nil) != ok || string(got) != want {
			t.Errorf("%.40s: got %q, %v", text, got, err)
		}
	}
	f(`{"a": [1, 2]}`, `{"a":[1,2]}`, true)
	f(`{ }`, ``, true)
	f(`[]`, ``, false)
	f(`"a"`, ``, false)
	filled := `{"a":"` + strings.Repeat("b", router.UserDataMax-8) + `"}`
	f(filled, filled, true)
	f(strings.Replace(filled, ":", ": ", 1), filled, true)
	f(strings.Replace(filled, "b", "bb", 1), ``, false)
	f(`{"a":1`+strings.Repeat(" ", userDataRawMax)+`}`, ``, false)
}

// What is read is a note within its limits, or a refusal.
func FuzzReadNote(f *testing.F) {
	for _, s := range []string{
		`{"externalId":"a","userData":{"b":[1,{}]}}`, `{"externalId":""}`, `{"userData":{}}`, `{"externalId":null,"userData":null}`,
		`{"userData":{"a":1,"a":2}}`, `{"externalId":"u\u0308"}`, `{"userData":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := readObject(text, "externalId", "userData")
		if err != nil {
			return
		}
		p, err := o.notePatch()
		if err != nil {
			if _, ok := err.(*failure); !ok { //nolint:errorlint // the handler's own
				t.Fatalf("an error that is no answer: %v", err)
			}
			return
		}
		if p.ExternalID != nil && *p.ExternalID != "" && checkTagName("", *p.ExternalID) != nil {
			t.Fatalf("external id %q", *p.ExternalID)
		}
		if p.UserData != nil && (len(*p.UserData) > router.UserDataMax || len(*p.UserData) > 0 && !jsontext.Value(*p.UserData).IsValid()) {
			t.Fatalf("user data %q", *p.UserData)
		}
	})
}
