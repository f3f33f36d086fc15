package client

import (
	"context"
	"net/http"
)

// Tags returns the gallery's tags in order of creation.
func (c *Client) Tags(ctx context.Context) ([]string, error) {
	return call[[]string](ctx, c, request{method: http.MethodGet, path: "/v1.1/tags"})
}

// CreateTag creates a tag. A gallery has at most 64. Creating a deleted tag again
// restores it on its events. When the answer to a try is lost, and a tag has the
// name at the next try, CreateTag reports success.
func (c *Client) CreateTag(ctx context.Context, name string) error {
	return run(ctx, c, request{method: http.MethodPost, path: join("v1.1", "tags", name), repeat: repeatThere})
}

// RenameTag renames a tag. Events keep it. When the answer to a try is lost, the
// next try may return ErrNotFound although the tag was renamed.
func (c *Client) RenameTag(ctx context.Context, name, newName string) error {
	body := struct {
		NewName string `json:"newName"`
	}{newName}
	return run(ctx, c, request{method: http.MethodPut, path: join("v1.1", "tags", name), body: body})
}

// DeleteTag deletes a tag. Subjects and events stay.
func (c *Client) DeleteTag(ctx context.Context, name string) error {
	return run(ctx, c, request{method: http.MethodDelete, path: join("v1.1", "tags", name), repeat: repeatGone})
}
