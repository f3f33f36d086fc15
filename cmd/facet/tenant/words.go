package tenant

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"facet.internal/client"
)

// lowerQuality is what an administrator can do about a low quality.
const lowerQuality = "or lower the application's --min-quality"

// advice is the next step after a kind of refusal.
type advice struct {
	kind error
	text string
}

// advices has the advice for each kind. The first kind that an error has counts.
var advices = []advice{
	{client.ErrNoFace, "take a photo that shows the face from the front, well lit, and larger"},
	{client.ErrMultipleFaces, "cut the photo so that one person is left"},
	{client.ErrPoorQuality, "take a sharp, evenly lit photo from the front, " + lowerQuality},
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
	for _, a := range advices {
		if errors.Is(e, a.kind) {
			return &refusedError{plain(e.Message) + a.after(e), err}
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

// after returns what follows the service's message. For a defect of the face the message says itself
// what to do, and for a low quality it does behind a semicolon.
func (a advice) after(e *client.Error) string {
	poor := errors.Is(e, client.ErrPoorQuality)
	switch {
	case poor && e.Reason != "":
		return ""
	case poor && strings.Contains(e.Message, ";"):
		return ", " + lowerQuality
	default:
		return ": " + a.text
	}
}

// plain returns a sentence of the service as a part of another one.
func plain(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToLower(first)) + strings.TrimSuffix(sentence[size:], ".")
}
