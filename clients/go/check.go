package client

import (
	"context"
	"net/http"
)

// BeginCheck starts a check and returns it. If the answer to a try is lost, a check without rows may stay
// until it expires.
func (c *Client) BeginCheck(ctx context.Context) (Check, error) {
	return call[Check](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/checks"})
}

// CheckRow returns what Register would do with p. row is your number of the photo. The same
// number again replaces the earlier photo. The errors are those of Register. ErrUnknownCheck is returned when the
// check is lost.
func (c *Client) CheckRow(ctx context.Context, checkID string, row int, p Photo) (CheckedRow, error) {
	body := struct {
		photoBody

		Row int `json:"row"`
	}{p.body(), row}
	return call[CheckedRow](ctx, c, request{method: http.MethodPost, path: join("v1.1", "face", "checks", checkID), body: body})
}

// EndCheck ends a check: the service forgets its faces.
func (c *Client) EndCheck(ctx context.Context, checkID string) error {
	return run(ctx, c, request{method: http.MethodDelete, path: join("v1.1", "face", "checks", checkID), repeat: repeatGone})
}
