package calls

import "testing"

func TestMessagesBecomeSentences(t *testing.T) {
	t.Parallel()
	f := func(message, want string) {
		t.Helper()
		if got := (&Error{Message: message}).Sentence(); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
	f("the gallery is full", "The gallery is full.")
	f("The gallery is full.", "The gallery is full.")
	f("another gallery has this name: 0123", "Another gallery has this name: 0123")
	f("the image can't be read: JPEG: it ends early", "The image can't be read: JPEG: it ends early.")
	f("é is no name", "É is no name.")
	f("full", "Full.")
	f("", "")
}
