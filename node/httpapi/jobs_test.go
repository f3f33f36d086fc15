package httpapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"facet/router"
)

// registrations returns a body with n items.
func registrations(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"registrations":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"filename":"staff/%06d.jpg","tags":["a","b"]}`, i)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func TestJobTakes100000Registrations(t *testing.T) {
	t.Parallel()
	items, err := readRegistrations(registrations(router.BulkItemsMax))
	if err != nil || len(items) != router.BulkItemsMax || items[99_999].Filename != "staff/099999.jpg" || len(items[99_999].Tags) != 2 {
		t.Errorf("%d items, %v", len(items), err)
	}
	if _, err := readRegistrations(registrations(router.BulkItemsMax + 1)); err == nil || !strings.Contains(err.Error(), "at most 100000") {
		t.Errorf("one more: %v", err)
	}
	if len(registrations(router.BulkItemsMax)) > bodyBytesDefault {
		t.Errorf("a full job with short names does not fit a body")
	}
}

// The result is either items or a refusal.
func FuzzReadRegistrations(f *testing.F) {
	f.Add(registrations(2))
	for _, s := range []string{
		`{}`, `{"registrations":null}`, `{"registrations":[{}]}`, `{"registrations":[{"filename":"a"}]} x`,
		`{"registrations":[{"filename":"a","tags":null,"x":{"y":[1]}}],"z":[[]]}`, `[`, `{"registrations":[[`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		items, err := readRegistrations(text)
		if err != nil {
			if _, ok := err.(*failure); !ok { //nolint:errorlint // the handler's own
				t.Fatalf("an error that is no answer: %v", err)
			}
			return
		}
		for _, item := range items {
			if len(item.Filename) > 4*router.BulkFilenameMax || !utf8.ValidString(item.Filename) || len(item.Tags) > tagsMax {
				t.Fatalf("item %+v", item)
			}
		}
	})
}
