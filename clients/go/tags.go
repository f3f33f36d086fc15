package client

import (
	"context"
	"net/http"
)

// Tags lists the gallery's tags in the order of their creation.
func (c *Client) Tags(ctx context.Context) ([]string, error) {
	return call[[]string](ctx, c, request{method: http.MethodGet, path: "/v1.1/tags"})
}

// CreateTag makes a tag; at most 64 are there. The name of a deleted tag revives
// it, with its events. When the answer of a try was lost, a name that is there is
// taken for the one that was made.
func (c *Client) CreateTag(ctx context.Context, name string) error {
	return run(ctx, c, request{method: http.MethodPost, path: join("v1.1", "tags", name), repeat: repeatThere})
}

// RenameTag renames a tag; events keep it. When the answer of a try was lost, the
// next one may say ErrNotFound of a renaming that was done.
func (c *Client) RenameTag(ctx context.Context, name, newName string) error {
	body := struct {
		NewName string `json:"newName"`
	}{newName}
	return run(ctx, c, request{method: http.MethodPut, path: join("v1.1", "tags", name), body: body})
}

// DeleteTag deletes a tag; subjects and events stay.
func (c *Client) DeleteTag(ctx context.Context, name string) error {
	return run(ctx, c, request{method: http.MethodDelete, path: join("v1.1", "tags", name), repeat: repeatGone})
}
