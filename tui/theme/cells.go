package theme

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

var spaces = strings.Repeat(" ", 512)

// Spaces returns n spaces.
func Spaces(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(spaces):
		return spaces[:n]
	default:
		return strings.Repeat(" ", n)
	}
}

// Width returns the width of a line in cells, without escape sequences.
func Width(s string) int {
	if plainASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Fit cuts a line, ending in an ellipsis, or pads it to exactly w cells. It may be
// styled.
func (l *Theme) Fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	n := Width(s)
	switch {
	case n == w:
		return s
	case n < w:
		return s + Spaces(w-n)
	}
	// Cutting and measuring disagree on some emoji.
	for most := w; ; most-- {
		if cut := l.Cut(s, most); Width(cut) <= w {
			return cut + Spaces(w-Width(cut))
		}
	}
}

// Cut shortens a line to at most w cells, ending in an ellipsis if it was cut.
func (l *Theme) Cut(s string, w int) string {
	switch {
	case w <= 0:
		return ""
	case plainASCII(s):
		if len(s) <= w {
			return s
		}
		return s[:w-1] + l.Ellipsis
	}
	return ansi.Truncate(s, w, l.Ellipsis)
}

// Middle makes an unstyled line exactly w cells wide. It cuts in the middle, so that the
// beginning and the name at the end stay visible. Of a listed URI it keeps the server's
// name, too.
func (l *Theme) Middle(s string, w int) string {
	if Width(s) <= w || w < 8 {
		return l.Fit(s, w)
	}
	head, rest := l.uriHead(s, w)
	return l.Fit(head+l.cutMiddle(rest, w-Width(head)), w)
}

// uriHead splits a text with a URI mcp://SERVER/REST after the server's name and drops the
// scheme. It shortens the name to leave minRest of w cells. Without such a URI, head is "".
func (l *Theme) uriHead(s string, w int) (head, rest string) {
	const minRest, minServer = 8, 5
	before, uri, _ := strings.Cut(s, "mcp://")
	server, rest, ok := strings.Cut(uri, "/")
	room := w - Width(before) - minRest - 1
	switch {
	case !ok || server == "" || room < minServer:
		return "", s
	case Width(server) > room:
		server = l.cutMiddle(server, room)
	}
	return before + server + "/", rest
}

func (l *Theme) cutMiddle(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	head := (w - 1) / 2
	tail := w - 1 - head
	if plainASCII(s) {
		return s[:head] + l.Ellipsis + s[len(s)-tail:]
	}
	return ansi.Truncate(s, head, "") + l.Ellipsis + ansi.TruncateLeft(s, n-tail, "")
}

// Right aligns a line right in exactly w cells.
func (l *Theme) Right(s string, w int) string {
	if n := Width(s); n < w {
		return Spaces(w-n) + s
	}
	return l.Fit(s, w)
}

// Sides places one text at the left and one at the right end of w cells. The left one is
// cut first.
func (l *Theme) Sides(left, right string, w int) string {
	r := Width(right)
	if r == 0 || r+2 > w {
		return l.Fit(left, w)
	}
	return l.Fit(left, w-r) + right
}

// Lines returns exactly h lines of exactly w cells.
func (l *Theme) Lines(lines []string, w, h int) []string {
	out := make([]string, h)
	for i := range out {
		if i < len(lines) {
			out[i] = l.Fit(lines[i], w)
		} else {
			out[i] = Spaces(w)
		}
	}
	return out
}

// Frame draws a border with a title, which may be styled, around lines. The result is h
// lines of w cells.
func (l *Theme) Frame(lines []string, title, right string, w, h int, border Style) []string {
	if w < 4 || h < 2 {
		return l.Lines(lines, w, h)
	}
	out := make([]string, 0, h)
	out = append(out, l.Rule(l.TopLeft, title, right, l.TopRight, w, border))
	side := border.On(l.Vertical)
	for i := range h - 2 {
		inner := Spaces(w - 2)
		if i < len(lines) {
			inner = l.Fit(lines[i], w-2)
		}
		out = append(out, side+inner+side)
	}
	return append(out, l.Rule(l.BottomLeft, "", "", l.BottomRight, w, border))
}

// Rule draws a horizontal border of w cells with a text near either end.
func (l *Theme) Rule(from, title, right, to string, w int, border Style) string {
	room := w - 2
	if right != "" {
		right = " " + right + " "
	}
	if title != "" {
		title = " " + l.Cut(title, max(room-6-Width(right), min(room-4, 12), 0)) + " "
	}
	n := Width(title) + Width(right)
	if n+3 > room {
		right, n = "", Width(title)
	}
	if n+1 > room {
		title, n = "", 0
	}
	fill := room - n - 1
	tail := ""
	if right != "" && fill > 0 {
		fill--
		tail = l.Horizontal
	}
	return border.On(from+l.Horizontal) + title + border.On(strings.Repeat(l.Horizontal, fill)) + right + border.On(tail+to)
}

// Overlay draws a box over a frame with its top left cell at (x, y). Both consist of
// lines of exact width. Parts outside the frame are cut off.
func Overlay(screen, box []string, x, y int) []string {
	out := append([]string(nil), screen...)
	for i, line := range box {
		at := y + i
		if at < 0 || at >= len(out) {
			continue
		}
		below := out[at]
		w := ansi.StringWidth(line)
		// A half-covered wide character at an edge is removed.
		left, right := ansi.Truncate(below, x, ""), ansi.TruncateLeft(below, x+w, "")
		left += Spaces(x - ansi.StringWidth(left))
		room := ansi.StringWidth(below) - x - w
		for n := x + w; ansi.StringWidth(right) > max(room, 0); {
			n++
			right = ansi.TruncateLeft(below, n, "")
		}
		right = Spaces(room-ansi.StringWidth(right)) + right
		out[at] = left + reset + line + reset + right
	}
	return out
}

// Row draws the row under the cursor of a focused or unfocused list.
func (l *Theme) Row(line string, focused bool) string {
	style := l.SelectedUnfocused
	if focused {
		style = l.Selected
	}
	if style == reverse {
		// reversed colours are hard to read
		line = ansi.Strip(line)
	}
	return style.over(line)
}
