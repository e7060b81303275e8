package stack

import (
	"context"
	"os"
	"time"

	"goblin/gateway/downstream"
	"goblin/registry"
)

// ErrDrain as the cause of [Stack.Run]'s context lets HTTP calls finish.
var ErrDrain = downstream.ErrDrain

// A daemon touches its files, since systems delete old temporary ones.
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

func (i *Stack) logStart() {
	if i.listener != nil {
		i.o.Logger.Info("daemon started", "version", i.o.Version, "pid", os.Getpid(), "config", i.configName())
	}
	if i.o.Only != nil {
		return // they may be about other servers
	}
	for _, w := range i.o.Config.Warnings {
		i.o.Logger.Warn("config warning", "warning", w.String())
	}
	for _, w := range i.ruleWarnings() {
		if w.File == registry.RuleFromFlag {
			i.o.Logger.Warn("rule warning", "warning", w.String())
		}
	}
}

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

func (i *Stack) logEnd(why string, err error) {
	switch {
	case i.listener == nil:
	case err != nil:
		i.o.Logger.Error("daemon stopped", "why", why, "err", err)
	default:
		i.o.Logger.Info("daemon stopped", "why", why)
	}
}
