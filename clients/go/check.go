package client

import (
	"context"
	"net/http"
)

// Check is a check of a list. It reports what registrations would do, and enrols nothing. One
// node keeps it in memory, until EndCheck, until ten minutes without a row, or until the node
// stops.
type Check struct {
	ID string `json:"id"`
	// RowsMax is the most rows with a face.
	RowsMax int `json:"rowsMax"`
}

// CheckedRow is what the registration of a row would do.
type CheckedRow struct {
	Row int `json:"row"`
	// Rows are other rows so far that show the same person, best first.
	Rows []ScoredRow `json:"rows"`
	// Candidates are enrolled subjects that show the same person, best first.
	Candidates []Candidate `json:"candidates"`
	// Known is the subject that has the external id, or empty.
	Known      string     `json:"known"`
	Attributes Attributes `json:"attributes"`
	// IgnoredFaces are as in Registered.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero"`
}

// ScoredRow is a row of a check and its similarity to another one.
type ScoredRow struct {
	Row   int `json:"row"`
	Score int `json:"score"`
}

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
