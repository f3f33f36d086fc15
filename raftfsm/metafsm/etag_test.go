package metafsm

import (
	"reflect"
	"testing"

	"facet/internal/id"
)

// other sets a field to a value that no record here has.
func other(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString("other")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int, reflect.Int64:
		field.SetInt(77)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		field.SetUint(77)
	case reflect.Float64:
		field.SetFloat(.77)
	case reflect.Slice:
		field.SetBytes([]byte{77})
	case reflect.Array:
		field.Index(0).SetUint(77)
	default: // an id
		other(field.Field(0))
	}
}

// What an update can set is a setting.
func TestETagIsOfSettingsOnly(t *testing.T) {
	t.Parallel()
	f := func(record, update any, etag func(reflect.Value) string) {
		t.Helper()
		of := reflect.TypeOf(record)
		for i := range of.NumField() {
			name := of.Field(i).Name
			_, setting := reflect.TypeOf(update).FieldByName(name)
			setting = setting && name != "Tenant" && name != "Shards" // they name the record, and follow from the size
			changed := reflect.New(of).Elem()
			changed.Set(reflect.ValueOf(record))
			other(changed.Field(i))
			if differs := etag(changed) != etag(reflect.ValueOf(record)); differs != setting {
				t.Errorf("%s.%s: another value gives another ETag: %v, want %v", of.Name(), name, differs, setting)
			}
		}
	}
	f(Gallery{Name: "a", Size: 1}, UpdateGallery{}, func(g reflect.Value) string { return g.Interface().(Gallery).ETag() })
	f(Application{Name: "a"}, UpdateApplication{}, func(a reflect.Value) string { return a.Interface().(Application).ETag() })
}

// State machines of all versions must compute the same.
func TestETagNeverChanges(t *testing.T) {
	t.Parallel()
	g := Gallery{ID: galleryA, Name: "staff", Description: "d", Size: 1000, RetentionDays: 30, PhotoLink: "https://hr.example/{externalId}", Purpose: "entry"}
	if got, want := g.ETag(), "39064a2abbd047ab5aafa10dc8ba820d"; got != want {
		t.Errorf("gallery: got %s, want %s", got, want)
	}
	a := Application{ID: id.Application{UUID: id.UUID{1}}, Name: "door", MinimumQuality: .45, VerifyThreshold: 7000, GuardThreshold: 7000, ReviewThreshold: 6000, ReviewVerdicts: 2}
	if got, want := a.ETag(), "4ef1183a9d451322ad8c2236da8eda72"; got != want {
		t.Errorf("application: got %s, want %s", got, want)
	}
}

func TestUpdateOfOtherSettingsIsRefused(t *testing.T) {
	t.Parallel()
	m := founded(t)
	g, _ := m.Gallery(galleryA)
	a, ok := m.Application(testApplication(1).ID)
	if !ok {
		t.Fatal("there is no application")
	}
	gallery := func(write byte, description, match string, want Status) {
		t.Helper()
		c := UpdateGallery{Write: testWrite(write), Tenant: tenantA, Gallery: galleryA, Description: &description, IfMatch: match}
		got, err := UpdateGalleryOp.Answer(m.Apply(1, UpdateGalleryOp.Encode(c)))
		if err != nil || got.Status != want {
			t.Errorf("%s: got %v, %v, want %v", description, got.Status, err, want)
		}
	}
	application := func(write byte, threshold int, match string, want Status) {
		t.Helper()
		c := UpdateApplication{Write: testWrite(write), Tenant: tenantA, Application: a.ID, VerifyThreshold: &threshold, IfMatch: match}
		got, err := UpdateApplicationOp.Answer(m.Apply(1, UpdateApplicationOp.Encode(c)))
		if err != nil || got.Status != want {
			t.Errorf("%d: got %v, %v, want %v", threshold, got.Status, err, want)
		}
	}
	gallery(30, "first", g.ETag(), Done)
	gallery(31, "second", g.ETag(), OtherSettings)
	gallery(30, "first", g.ETag(), Replayed)
	gallery(31, "second", "", Done)
	application(40, 8000, a.ETag(), Done)
	application(41, 7500, a.ETag(), OtherSettings)
	application(40, 8000, a.ETag(), Replayed)
	application(41, 7500, "", Done)
}
