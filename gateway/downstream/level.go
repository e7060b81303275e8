package downstream

import (
	"log/slog"
	"slices"

	"goblin/registry/rawjson"
)

// Level orders the levels of RFC 5424 as MCP names them.
type Level int

const (
	// LevelUnset sorts below all, so a session that set none gets whatever servers
	// send.
	LevelUnset Level = -1
	// LevelInfo is the place of "info" in [Levels].
	LevelInfo Level = 1
	// LevelWarning is the place of "warning" in [Levels].
	LevelWarning Level = 3
)

// Levels are the names of all levels.
var Levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelNone is above all levels, also above unknown ones.
var levelNone = Level(len(Levels) + 1)

// ParseLevel reads the name of a level.
func ParseLevel(name string) (Level, bool) {
	i := slices.Index(Levels, name)
	return Level(i), i >= 0
}

// MessageLevel reads the level of notifications/message; unknown ones count as
// the highest, so that nothing is lost.
func MessageLevel(params []byte) Level {
	name := rawjson.GetString(params, "level")
	if l, ok := ParseLevel(name); ok {
		return l
	}
	return Level(len(Levels))
}

// Slog is the level in Goblin's own log.
func (l Level) Slog() slog.Level {
	switch {
	case l <= 0:
		return slog.LevelDebug
	case l <= 2:
		return slog.LevelInfo
	case l == LevelWarning:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// SetLevel keeps the level that a session asked for.
func (s *Session) SetLevel(l Level) { s.level.Store(int32(l - LevelUnset)) }

// Level is the level that the session asked for; LevelUnset before that.
func (s *Session) Level() Level { return Level(s.level.Load()) + LevelUnset }

// Level is the level that holds for one request: of a stateless client its
// own, and without one nothing at all.
func (x *Request) Level() Level {
	m := x.Modern()
	if m == nil {
		return x.session.Level()
	}
	if l, ok := ParseLevel(m.LogLevel); ok {
		return l
	}
	return levelNone
}
