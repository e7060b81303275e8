//go:build !unix

package remoteui

import "time"

// signals stands for the signals of other systems: the size is looked at now
// and then, and nothing is stopped.
type signals struct {
	tick      *time.Ticker
	resized   <-chan time.Time
	stopped   chan struct{}
	continued chan struct{}
	exact     bool
}

func watchSignals(bool) *signals {
	t := time.NewTicker(300 * time.Millisecond)
	return &signals{tick: t, resized: t.C}
}

func isForeground(int) bool { return true }

// isGone is known by reading alone.
func isGone(int) bool { return false }

func (s *signals) close() { s.tick.Stop() }

func (s *signals) stop(bool) {}
