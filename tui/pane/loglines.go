package pane

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"goblin/tui/theme"
	"goblin/tui/viewer"
)

// maxHead is the beginning of a stderr line that may contain its time and level, in
// bytes.
const maxHead = 80

var levelWords = map[string]slog.Level{
	"trace": slog.LevelDebug, "debug": slog.LevelDebug,
	"warn": slog.LevelWarn, "warning": slog.LevelWarn,
	"error": slog.LevelError, "err": slog.LevelError, "fatal": slog.LevelError, "critical": slog.LevelError, "panic": slog.LevelError,
}

// lineLevel returns the level that a line of stderr names, or slog.LevelInfo. A word
// counts in capital letters, in brackets, after "level", or at the start before a colon.
func lineLevel(text string) slog.Level {
	text = text[:min(len(text), maxHead)]
	isLetter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	first, last := true, ""
	for i := 0; i < len(text); {
		if !isLetter(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && isLetter(text[i]) {
			i++
		}
		word := text[start:i]
		low := strings.ToLower(word)
		level, known := levelWords[low]
		next := text[i:min(i+1, len(text))]
		bracket := start > 0 && strings.ContainsRune("[<(", rune(text[start-1])) && next != "" && strings.Contains("]>)", next)
		if known && (word == strings.ToUpper(word) || bracket || first && next == ":" || last == "level" || last == "lvl" || last == "severity") {
			return level
		}
		first, last = false, low
	}
	return slog.LevelInfo
}

// foldKey returns the part of a line that repeated lines share: without a time at the
// start and a process id.
func foldKey(text string) string {
	head := text[:min(len(text), maxHead)]
	rest := strings.TrimLeft(head, "0123456789:-/.,TZ+[]() ")
	if at := len(head) - len(rest); rest != "" && strings.Contains(head[:at], ":") {
		text = text[at:]
	}
	head = strings.ToLower(text[:min(len(text), maxHead)])
	if i := strings.Index(head, "pid"); i >= 0 && len(head) == len(text[:min(len(text), maxHead)]) {
		digits := strings.TrimLeft(head[i+3:], "=: ")
		from := len(head) - len(digits)
		to := len(head) - len(strings.TrimLeft(digits, "0123456789"))
		text = text[:from] + text[to:]
	}
	return text
}

// linesAround returns the held lines of a row's server, and the row's number among them.
// Outside of stderr, it returns all lines of the tab.
func (p *Logs) linesAround(of *logRow) (rows []*logRow, at int) {
	for _, r := range p.Logs[p.Open].Held {
		if p.Open == TabStderr && r.Server != of.Server {
			continue
		}
		rows = append(rows, r)
		if r.Seq == of.Seq {
			at = len(rows)
		}
	}
	return rows, at
}

func viewerLines(lk *theme.Theme, rows []*logRow, withServer bool) []viewer.Line {
	lines := make([]viewer.Line, len(rows))
	for i, r := range rows {
		text := clockText(r.Time, 12) + " " + fmt.Sprintf("%-5s", levelName(r.Level)) + " "
		if withServer && r.Server != "" {
			text += r.Server + " "
		}
		text += strings.TrimRight(r.Text, " \r\n")
		if r.times > 1 {
			text += fmt.Sprintf(lk.Own("  (× %d, last %s)"), r.times, clockText(r.last, 8))
		}
		lines[i] = viewer.Line{Text: text, Level: r.Level}
	}
	return lines
}

const (
	lineTab = "Line"
	logTab  = "Log"
)

// logSubject shows the selected line, or all lines with it.
func (p *Logs) logSubject(r *logRow) Subject {
	s := r.subject(tabNames[p.Open], p.app.Reg)
	one := s.Blocks
	var rows []*logRow
	if p.app.Details[PaneLogs].tab == logTab {
		rows, s.line = p.linesAround(r)
		s.numbers = true
		s.Version += fmt.Sprint(" ", p.Log.Read)
	}
	withServer, lk := p.Open != TabStderr, p.app.Theme
	s.Tabs = []viewer.Tab{
		{Name: lineTab, Sections: one},
		{Name: logTab, Sections: func(context.Context) []viewer.Section {
			return []viewer.Section{{Kind: viewer.Log, Lines: viewerLines(lk, rows, withServer)}}
		}},
	}
	return s
}
