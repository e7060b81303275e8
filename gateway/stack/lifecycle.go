package stack

import (
	"context"
	"os"
	"time"

	"goblin/gateway/downstream"
)

// ErrDrain as the cause of the context of [Stack.Run] lets calls over HTTP finish.
var ErrDrain = downstream.ErrDrain

// touchInterval is the interval at which a daemon touches its files. Systems delete
// temporary files after some days.
const touchInterval = time.Hour

func (i *Stack) touchFiles(ctx context.Context) {
	tick := time.NewTicker(i.touchInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if i.listener != nil {
				i.listener.TouchFiles()
			}
			i.children.TouchFile()
		case <-ctx.Done():
			return
		}
	}
}

// logStart logs the start of a daemon and the warnings about the config.
func (i *Stack) logStart() {
	if i.listener != nil {
		i.o.Logger.Info("daemon started", "version", i.o.Version, "pid", os.Getpid(), "config", i.ConfigName())
	}
	if i.o.Only != nil {
		return // warnings may be about other servers
	}
	for _, w := range i.o.Config.Warnings {
		i.o.Logger.Warn("config warning", "warning", w.String())
	}
}

// endReason returns the reason why a daemon stopped whose Run got ctx.
func (i *Stack) endReason(ctx context.Context) string {
	switch {
	case i.stopped.Err() != nil:
		return "goblin stop"
	case ctx.Err() != nil:
		return "signal or quit"
	case i.o.Linger > 0:
		return "no client for " + i.o.Linger.String()
	default:
		return "failure"
	}
}

// logEnd writes a daemon's last log line.
func (i *Stack) logEnd(why string, err error) {
	switch {
	case i.listener == nil:
	case err != nil:
		i.o.Logger.Error("daemon stopped", "why", why, "err", err)
	default:
		i.o.Logger.Info("daemon stopped", "why", why)
	}
}
