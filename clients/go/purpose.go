package client

import (
	"context"
	"fmt"
)

// purposeBytesMax is the most bytes of a purpose, as many as a record of the audit log has.
const purposeBytesMax = 256

// purposeKey is the key of the value in the context.
type purposeKey struct{}

// WithPurpose returns a context whose requests state this purpose instead of Config.Purpose. An empty one states none.
func WithPurpose(ctx context.Context, purpose string) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose)
}

// purposeOf returns what the requests of ctx state as their purpose, which is usual unless ctx has another one. The error
// is that of checkPurpose.
func purposeOf(ctx context.Context, usual string) (string, error) {
	purpose, ok := ctx.Value(purposeKey{}).(string)
	if !ok {
		purpose = usual
	}
	return purpose, checkPurpose(purpose)
}

// checkPurpose returns an error unless a header may have the purpose.
func checkPurpose(purpose string) error {
	if len(purpose) > purposeBytesMax {
		return fmt.Errorf("the purpose has %d bytes: shorten it to %d", len(purpose), purposeBytesMax)
	}
	for _, r := range purpose {
		if r < ' ' || r > '~' {
			return fmt.Errorf("the purpose has the character %q: a header may have printable ASCII characters only", r)
		}
	}
	return nil
}
