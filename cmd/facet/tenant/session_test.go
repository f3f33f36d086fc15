package tenant

import (
	"testing"

	"facet.internal/client"
)

func TestFlagPrecedesOtherKeys(t *testing.T) {
	f := func(flag, variable, profile, want string) {
		t.Helper()
		t.Setenv(keyVariable, variable)
		if got := APIKey(flag, client.Config{APIKey: profile}); got != want {
			t.Errorf("flag %q, variable %q, profile %q: %q, want %q", flag, variable, profile, got, want)
		}
	}
	f("f", "v", "p", "f")
	f("", "v", "p", "v")
	f("", "", "p", "p")
	f("", "", "", "")
}
