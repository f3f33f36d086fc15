package keys

import (
	"context"
	"log/slog"
	"time"

	"facet/node/loop"
)

const (
	// expiryErrorTime is how long before a certificate's end its log line is an error, not a
	// warning.
	expiryErrorTime = 3 * 24 * time.Hour
	// expiryCheckInterval is how often certificates are checked; expiryLogInterval is how
	// often one warning is repeated.
	expiryCheckInterval = time.Hour
	expiryLogInterval   = 24 * time.Hour
)

// Run logs each day which certificates end soon, until ctx ends. A node can't renew its
// certificates itself, because only operators have the authority's key.
func (k *Keys) Run(ctx context.Context) {
	defer k.Start()()
	for {
		rest := expiryCheckInterval
		if k.WarnOfExpiry(ctx, time.Now()) {
			rest = expiryLogInterval
		}
		k.Done(nil)
		if loop.Pause(ctx, rest) != nil {
			return
		}
	}
}

// WarnOfExpiry logs which certificates end soon after now, and reports whether any does.
func (k *Keys) WarnOfExpiry(ctx context.Context, now time.Time) (warned bool) {
	for _, e := range k.Credentials().Expiries() {
		if !e.Soon(now) {
			continue
		}
		level := slog.LevelWarn
		if e.At.Sub(now) < expiryErrorTime {
			level = slog.LevelError
		}
		k.cfg.Log.Log(ctx, level, "renew the certificates: facet cluster renew, where the authority is", "why", e.In(now))
		warned = true
	}
	return warned
}
