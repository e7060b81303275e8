// Package exchange describes requests and their answers in sections for a detail.
//
// Its functions read records and the registry only, and do no I/O. The package must not
// know panes.
package exchange

import (
	"strings"
	"time"

	"goblin/registry"
	"goblin/tui/theme"
)

const millis = "15:04:05.000"

// clock formats a time of day, or returns "" for the zero time.
func clock(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(layout)
}

func arrow(lk *theme.Theme, d registry.Direction) string {
	if d == registry.ToClient {
		return lk.From
	}
	return lk.To
}

// FormatTime returns a date and a time, or "" for the zero time.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// SessionText returns a session id with its client and transport, if it is connected.
func SessionText(reg *registry.Registry, id string) string {
	if id == "" {
		return ""
	}
	for _, s := range reg.Sessions() {
		if s.ID != id {
			continue
		}
		who := strings.TrimSpace(s.Client + " " + s.Version)
		if s.Screen {
			who = strings.TrimSpace("UI " + who)
		}
		if s.Transport != "" && s.Transport != "screen" {
			who += " over " + s.Transport
		}
		return id + "  " + strings.TrimSpace(who)
	}
	return id
}
