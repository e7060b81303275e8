package mcpclient

import (
	"context"
	"time"
)

const (
	checkInterval = 10 * time.Second // also the timeout of a check
	maxFailures   = 3                // consecutive; a busy machine may miss some
)

// WatchLiveness calls alive every 10 seconds while busy returns true. It returns the
// error of alive after three consecutive failures, so after at least 30 seconds. It
// returns nil when ctx is done.
func WatchLiveness(ctx context.Context, busy func() bool, alive func(context.Context) error) error {
	t := time.NewTicker(checkInterval)
	defer t.Stop()
	for failed := 0; ; {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if !busy() {
			failed = 0
			continue
		}
		look, cancel := context.WithTimeout(ctx, checkInterval)
		err := alive(look)
		cancel()
		if failed++; err == nil {
			failed = 0
		}
		if failed == maxFailures && ctx.Err() == nil {
			return err
		}
	}
}
