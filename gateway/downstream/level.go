package downstream

import (
	"log/slog"
	"slices"

	"goblin/registry/rawjson"
)

// Level is a log level of RFC 5424, ordered by severity.
type Level int

const (
	// LevelUnset is below all levels, so sessions without a level get all messages.
	LevelUnset Level = -1
	// LevelInfo is the index of "info" in [Levels].
	LevelInfo Level = 1
	// LevelWarning is the index of "warning" in [Levels].
	LevelWarning Level = 3
)

// Levels lists the names of the levels.
var Levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelNone is above all levels, even unknown ones.
var levelNone = Level(len(Levels) + 1)

// ParseLevel parses the name of a level.
func ParseLevel(name string) (Level, bool) {
	i := slices.Index(Levels, name)
	return Level(i), i >= 0
}

// MessageLevel returns the level in notifications/message. Unknown levels count as the
// highest.
func MessageLevel(params []byte) Level {
	name := rawjson.GetString(params, "level")
	if l, ok := ParseLevel(name); ok {
		return l
	}
	return Level(len(Levels))
}

// Slog returns the level for Goblin's own log.
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

// SetLevel sets the requested level.
func (s *Session) SetLevel(l Level) { s.level.Store(int32(l - LevelUnset)) }

// Level returns the requested level, or LevelUnset.
func (s *Session) Level() Level { return Level(s.level.Load()) + LevelUnset }

// Level returns the level for one request. Stateless requests without a level get no
// messages.
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
