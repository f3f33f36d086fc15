package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/nodetest"
	"facet/router"
)

// Older releases stored descriptions with control characters. They are kept until somebody changes
// them.
func TestDescriptionsTakeNoControlCharacters(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		s := startFaces(t)
		own := s.tenant(t, "descriptions", 0)
		const stored = "stored\x1b[2J"
		old, err := s.Nodes[0].Node.Router().CreateGallery(t.Context(), own.key.Tenant, router.Write{Operation: id.Operation{1}},
			router.NewGallery{Gallery: settings.Gallery{Name: "old", Description: stored, Size: 10}, MinimumQuality: .5})
		must.Do(t, err)
		gallery := old.ID.String()
		f := func(status int, operation string, body any, want string) {
			t.Helper()
			method, target, _ := strings.Cut(operation, " ")
			var got struct{ Description, Message string }
			a := own.admin.Call(t, own.base, method, target, body)
			if a.Decode(t, &got); a.Status != status || got.Description != want {
				t.Errorf("%s with %v: %d, %+v; want %d, description %q", operation, body, a.Status, got, status, want)
			}
		}
		f(http.StatusOK, "PATCH /api/galleries/"+gallery, map[string]any{"retentionDays": 30}, stored)
		for _, bad := range []string{"\x1b[2J", "\u009b31m", "a\rb", "\x00", "\x7f"} {
			f(http.StatusBadRequest, "PATCH /api/galleries/"+gallery, map[string]any{"description": bad}, "")
			f(http.StatusBadRequest, "POST /api/galleries", map[string]any{"name": "new", "description": bad, "faceMinimumQualityScore": .5, "size": 1}, "")
			f(http.StatusBadRequest, "POST /api/applications", map[string]any{"name": "new", "description": bad, "faceMinimumQualityScore": .5, "galleryId": gallery}, "")
		}
		f(http.StatusOK, "GET /api/galleries/"+gallery, nil, stored)
		f(http.StatusOK, "PATCH /api/galleries/"+gallery, map[string]any{"description": "a\tb\nc\u202e"}, "a\tb\nc\u202e")
	})
}
