// Liveness tells a process that hangs from one that takes its time. It must not know
// which process that is, nor what becomes of those who wait for it.

package mcpclient

import (
	"context"
	"time"
)

const (
	checkInterval = 10 * time.Second // between two looks, and for one
	maxFailures   = 3                // looks in a row that may fail, as on a busy machine
)

// WatchLiveness looks now and then, while busy says that somebody waits, whether a process is alive.
// It returns why it is not, once that was so several times in a row, for half a minute at
// least; nil when ctx ends.
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
