package stack

import (
	"context"
	"os"
	"time"

	"goblin/gateway/downstream"
)

// ErrDrain as the cause of the context of [Stack.Run] lets calls over HTTP finish.
var ErrDrain = downstream.ErrDrain

// touchInterval is how often a daemon touches its files. Folders for temporary files are cleared of files
// that are some days old.
const touchInterval = time.Hour

// touchFiles keeps the files of a daemon until ctx ends.
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

// logStart logs what begins here, and what users of the
// config are warned of.
func (i *Stack) logStart() {
	if i.listener != nil {
		i.o.Logger.Info("Daemon started", "version", i.o.Version, "pid", os.Getpid(), "config", i.ConfigName())
	}
	if i.o.Only != nil {
		return // they may be about others
	}
	for _, w := range i.o.Config.Warnings {
		i.o.Logger.Warn("Config", "warning", w.String())
	}
}

// endReason says what ended a daemon whose Run was given ctx.
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

// logEnd is the last line of a daemon.
func (i *Stack) logEnd(why string, err error) {
	switch {
	case i.listener == nil:
	case err != nil:
		i.o.Logger.Error("Daemon stopped", "why", why, "err", err)
	default:
		i.o.Logger.Info("Daemon stopped", "why", why)
	}
}
