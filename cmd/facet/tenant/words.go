package tenant

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"facet.internal/client"
)

// advice tells what to do about a refusal. The first kind that an error has counts.
var advice = []struct {
	kind error
	text string
}{
	{client.ErrNoFace, "take a photo that shows the face from the front, well lit, and larger"},
	{client.ErrMultipleFaces, "cut the photo so that one person is left"},
	{client.ErrPoorQuality, "take a sharp, evenly lit photo from the front, or lower the application's --min-quality"},
	{client.ErrImage, "it must be a JPEG, PNG, GIF, BMP, WebP, TIFF or HEIC of 16 to 12,000 pixels a side"},
	{client.ErrGalleryFull, "facet gallery grow NAME SIZE makes room"},
	{client.ErrUnknownTag, "facet tag list shows the tags, facet tag create NAME makes one"},
}

// refusedError is a refusal in words for people.
type refusedError struct {
	text string
	err  error
}

// Error returns the text.
func (e *refusedError) Error() string { return e.text }

// Unwrap returns the service's error.
func (e *refusedError) Unwrap() error { return e.err }

// words returns err in words that help a person, if it is an answer of the service. Other errors
// stay as they are.
func words(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if _, done := errors.AsType[*refusedError](err); !ok || done { // a command has found better words
		return err
	}
	for _, a := range advice {
		if errors.Is(e, a.kind) {
			return &refusedError{plain(e.Message) + ": " + a.text, err}
		}
	}
	switch {
	case e.Reason == "TenantDisabled":
		return &refusedError{plain(e.Message), err}
	case errors.Is(e, client.ErrForbidden):
		return &refusedError{"refused (403: " + plain(e.Message) + "): the access key lacks this right, or it, its secret or the API key is not valid", err}
	case e.Status >= 500 || errors.Is(e, client.ErrBusy):
		return &refusedError{plain(e.Message) + " (request " + e.RequestID + ")", err}
	default:
		return &refusedError{plain(e.Message), err}
	}
}

// plain returns a sentence of the service as a part of another one.
func plain(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToLower(first)) + strings.TrimSuffix(sentence[size:], ".")
}
