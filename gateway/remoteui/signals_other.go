//go:build !unix

package remoteui

import "time"

// signals replaces signals on systems without them: it polls the size, and never stops
// the process.
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

// isGone cannot detect a closed terminal; only reading does.
func isGone(int) bool { return false }

func (s *signals) close() { s.tick.Stop() }

func (s *signals) stop(bool) {}
