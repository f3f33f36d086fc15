package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Addresses returns the admin ports that the client knows.
func (c *Client) Addresses() []string { return c.addresses }

// Fetch returns the answer of the node at address to a GET of path, as it is. An answer of more
// than bytesMax bytes is an error.
func (c *Client) Fetch(ctx context.Context, address, path string, bytesMax int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", address, err)
	}
	return c.answer(r, bytesMax)
}

// answer sends a request and returns the body of a successful answer.
func (c *Client) answer(r *http.Request, bytesMax int64) ([]byte, error) {
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err // the error names method and address already
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, bytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", r.URL.Host, err)
	}
	if answer.StatusCode/100 != 2 {
		var e struct{ Message string }
		_ = json.Unmarshal(b, &e) // otherwise there is no message
		return nil, &AnswerError{Status: answer.StatusCode, Message: e.Message}
	}
	if int64(len(b)) > bytesMax {
		return nil, fmt.Errorf("the answer of %s has more than %d bytes", r.URL.Host, bytesMax)
	}
	return b, nil
}
