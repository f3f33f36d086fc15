package importing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
)

const (
	// checkTries is how often a check is begun when its node stops.
	checkTries = 3
	// checkEndTime is how long the end of a check may take.
	checkEndTime = 5 * time.Second
)

// check is one check in progress. It reports what an import would do, and does nothing.
type check struct {
	Config
	sender
	client   *client.Client
	progress *progress
	photos   buffers
	room     *client.GalleryRoom // nil: an older service does not say

	mu    sync.Mutex // guards the fields below
	found []finding  // by the place of the row
	sum   Summary    // rows that are checked, and failed
}

// finding is the service's answer for one row.
type finding struct {
	row     list.Row
	checked client.CheckedRow
	err     error // why the row would fail
}

// Check reports what Run would do with the rows. After an error there is no report.
func Check(ctx context.Context, cfg Config) (CheckSummary, error) {
	cfg.Client.Tries = 1 // insist sends again
	c, err := client.New(cfg.Client)
	if err != nil {
		return CheckSummary{}, err
	}
	defer c.Close()
	seen, err := lookAt(ctx, cfg.Source, nil)
	if err != nil {
		return CheckSummary{}, err
	}
	total := seen.rows
	k := &check{Config: cfg, client: c}
	for try := 1; ; try++ {
		k.found, k.sum, k.progress = make([]finding, total), Summary{}, newProgress(cfg.Out, cfg.Terminal, total)
		k.begin(cfg)
		err = k.all(ctx, total)
		k.progress.close()
		switch {
		case ctx.Err() != nil:
			return CheckSummary{}, ErrInterrupted
		case errors.Is(err, client.ErrUnknownCheck) && try < checkTries:
			fmt.Fprintf(cfg.Out, "the node that kept the faces has stopped: %d rows are checked again\n", k.sum.Rows)
		case err != nil:
			return CheckSummary{}, err
		default:
			return reportCheck(cfg, k.found, k.room)
		}
	}
}

// all checks all rows on one node's memory. The error is ErrUnknownCheck if that is lost.
func (k *check) all(ctx context.Context, total int) error {
	requests, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k.stop = stop
	ended := make(chan error, 1)
	go func() { ended <- k.rows(requests, total) }()
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, context.Cause(requests))
		case <-every.C:
			k.mu.Lock()
			sum := k.sum
			k.mu.Unlock()
			k.progress.show("rows checked", sum, 0, k.stall())
		}
	}
}

// rows runs one check: it starts it, sends the rows, and ends it.
func (k *check) rows(ctx context.Context, total int) error {
	me, err := whoami(ctx, &k.sender, k.client)
	if k.room = me.Gallery; err == nil {
		err = checkRole(me.Role)
	}
	if err != nil {
		return err
	}
	var begun client.Check
	err = k.insist(ctx, func(ctx context.Context) (err error) {
		begun, err = k.client.BeginCheck(ctx)
		return err
	})
	if err != nil {
		return err
	}
	defer k.end(begun.ID)
	if total > begun.RowsMax {
		return fmt.Errorf("the list has %d rows, a check takes %d: split it; doubles across its parts are not found then", total, begun.RowsMax)
	}
	return k.feed(ctx, begun.ID)
}

// end tells the service to forget the faces. If that fails, it does so by itself after a while.
func (k *check) end(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), checkEndTime)
	defer cancel()
	_ = k.insist(ctx, func(ctx context.Context) error { return k.client.EndCheck(ctx, id) })
}

// feed hands the rows out and waits for them.
func (k *check) feed(ctx context.Context, id string) error {
	var work sync.WaitGroup
	defer work.Wait()
	place := 0
	for row, err := range k.Source.Rows() {
		if err != nil {
			return err
		}
		if place == len(k.found) {
			return errors.New("the list has grown meanwhile")
		}
		at := place
		place++
		if row.Err != nil {
			k.note(at, finding{row: row, err: row.Err})
			continue
		}
		if err := k.gate.enter(ctx); err != nil {
			return nil // all returns the cause
		}
		work.Go(func() {
			defer k.gate.leave()
			f := finding{row: row}
			f.checked, f.err = k.one(ctx, id, at, row)
			k.note(at, f)
		})
	}
	return nil
}

// one checks a row. What ends the check ends all requests.
func (k *check) one(ctx context.Context, id string, at int, row list.Row) (out client.CheckedRow, err error) {
	t := task{row: row, photo: k.photos.get()}
	defer k.photos.put(t.photo)
	if err := row.CopyTo(t.photo); err != nil {
		return out, err
	}
	err = k.insist(ctx, func(ctx context.Context) (err error) {
		out, err = k.client.CheckRow(ctx, id, at, t.registration(k.Tags))
		return err
	})
	refused, answered := errors.AsType[*client.Error](err)
	if errors.Is(err, client.ErrUnknownCheck) || answered && refused.Reason == "CheckFull" || err != nil && hopeless(err) {
		k.stop(err)
	}
	if err == nil {
		k.gate.answered()
	}
	return out, err
}

func (k *check) note(at int, f finding) {
	if f.err != nil {
		f.err = k.Words(f.err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found[at] = f
	k.sum.Rows++
	if f.err != nil {
		k.sum.Failed++
	}
}
