package tenant

import (
	"testing"

	"facet.internal/client"
)

// A message of the service that says what to do gets no second advice.
func TestAdviceIsGivenOnce(t *testing.T) {
	t.Parallel()
	f := func(e client.Error, want string) {
		t.Helper()
		e.Status = 400
		if got := words(&e).Error(); got != want {
			t.Errorf("%s %s: %q, want %q", e.Type, e.Reason, got, want)
		}
	}
	f(client.Error{Type: "PoorQuality", Reason: "FaceCut", Message: "The border cuts the face: move the whole face into the picture."},
		"the border cuts the face: move the whole face into the picture")
	f(client.Error{Type: "PoorQuality", Message: "The face's quality 0.31 is below the minimum 0.45; turn towards the camera."},
		"the face's quality 0.31 is below the minimum 0.45; turn towards the camera, or lower the application's --min-quality")
	f(client.Error{Type: "PoorQuality", Message: "The face's quality 0.31 is below the minimum 0.45."},
		"the face's quality 0.31 is below the minimum 0.45: take a sharp, evenly lit photo from the front, or lower the application's --min-quality")
	f(client.Error{Type: "InvalidRequest", Reason: "GalleryFull", Message: "The gallery is full."}, "the gallery is full: facet gallery grow NAME SIZE makes room")
}
