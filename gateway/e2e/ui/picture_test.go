//go:build e2e

package ui

import (
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

var update = flag.Bool("update", false, "draw the pictures of the README again")

// The README shows the demo as the binary draws it, on a dark and on a light terminal.
// Times and counts differ in each run, so only the words of the pictures are compared.
func TestPictureOfTheReadmeIsCurrent(t *testing.T) {
	t.Parallel()
	eachTheme(t, "picture", func(w *e2e.World) string {
		p := demo(w, 112, 24)
		p.Types("4js")
		p.Keys("Enter")
		return capture(p, "the clock, just read", func(text string) bool {
			return regexp.MustCompile(`\b\d+ updates`).MatchString(text) && !strings.Contains(text, "stale") && !regexp.MustCompile(`running|clock://now .*Δ`).MatchString(text) && !strings.Contains(text, "ubscribed to")
		})
	})
}

func TestPictureOfTheTimelineIsCurrent(t *testing.T) {
	t.Parallel()
	eachTheme(t, "timeline", func(w *e2e.World) string {
		p := demo(w, 112, 34)
		cursor, agent := named(w, "cursor"), named(w, "claude-code")
		p.Types(":timeline")
		p.Keys("Enter")
		p.Shows("[Time line]", "cursor 1", "claude-code 1")
		p.Types("/-initialize")
		p.Keys("Enter")
		p.Hides("claude-code")
		slow := cursor.Begin("tools/call", e2e.Obj{"name": "clock_countdown", "arguments": e2e.Obj{"from": 6, "interval_ms": 300}, "_meta": e2e.Obj{"progressToken": 1}})
		p.Shows("cursor 1", "progress") // the order of the groups
		agent.Ok("tools/call", e2e.Obj{"name": "library_search_books", "arguments": e2e.Obj{"query": "cosy mystery"}})
		agent.Ok("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `for i = 1, 2 do clock.countdown{from=i, interval_ms=150} end
return library.search_books{query="dragon"}`}})
		agent.Ok("tools/call", e2e.Obj{"name": "library_take_inventory", "arguments": e2e.Obj{"shelves": 4, "pace_ms": 150}, "_meta": e2e.Obj{"progressToken": 2}})
		require.Nil(w.T, cursor.End(slow).Error)
		agent.Ok("resources/read", e2e.Obj{"uri": "clock://now"})
		p.Shows("clock://now")
		p.Types("+")
		p.Hides(" 5 s, following")
		return capture(p, "all calls", func(text string) bool {
			return !strings.Contains(text, "connected") && strings.Contains(text, " UTC")
		})
	})
}

// named returns a client of the daemon with a name.
func named(w *e2e.World, name string) *e2e.Client {
	w.AllowDaemon = true
	c := w.Pipe("stdio")
	c.Ok("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": name, "version": "1"}})
	c.Notify("notifications/initialized", nil)
	return c
}

// eachTheme draws a picture in both themes, and compares or writes it.
func eachTheme(t *testing.T, name string, draw func(w *e2e.World) (screen string)) {
	for _, theme := range []struct{ name, background string }{{"dark", "15;0"}, {"light", "0;15"}} {
		t.Run(theme.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.DemoWorld(t)
			w.Env = append(w.Env, "COLORFGBG="+theme.background)
			drawn := drawSVG(draw(w), theme.name == "light")
			path := "../../../tui/" + name + "-" + theme.name + ".svg"
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(drawn), 0o644))
				return
			}
			committed, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, words(string(committed)), words(drawn), "run task picture")
		})
	}
}

// capture waits for a condition and returns the lines with their escape sequences.
func capture(p *e2e.Pane, what string, ok func(text string) bool) (screen string) {
	p.Until(what, func(string) bool {
		screen = p.Tmux("capture-pane", "-e", "-p")
		return ok(sgr.ReplaceAllString(screen, ""))
	})
	return screen
}

// words returns the words of a picture that are the same in each run, sorted.
func words(svg string) []string {
	text := regexp.MustCompile(`<style>.*?</style>|<[^>]*>`).ReplaceAllString(svg, " ")
	found := regexp.MustCompile(`[A-Za-z:/_.-]{4,}`).FindAllString(text, -1)
	dates := regexp.MustCompile(`day$|^(January|February|March|April|June|July|August|September|October|November|December)$`)
	found = slices.DeleteFunc(found, dates.MatchString)
	slices.Sort(found)
	return slices.Compact(found)
}

// style is a terminal's style of a cell. Colors are CSS; "" is the terminal's default.
type style struct {
	foreground, background string
	bold, underlined       bool
}

// sgr is an escape sequence that sets a style.
var sgr = regexp.MustCompile(`\x1b\[([\d;]*)m`)

// phrase is text between two or more spaces, which XML would collapse.
var phrase = regexp.MustCompile(`\S+(?: \S+)*`)

// Sizes in pixels of a cell and of the margin.
const (
	cellWidth, cellHeight, margin = 8.4, 16.5, 12.0
)

// drawSVG draws lines with the escape sequences of SGR as a picture. Each run of equal
// style is fitted to its cells, so that it looks the same with any monospaced font.
func drawSVG(screen string, light bool) string {
	foreground, background := "#d4d4d4", "#1e1e1e"
	if light {
		foreground, background = "#24292f", "#ffffff"
	}
	var boxes, texts strings.Builder
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	columns := 0
	var now style
	for row, line := range lines {
		column := 0
		y := margin + float64(row)*cellHeight
		for line != "" {
			if sequence := sgr.FindStringSubmatch(line); sequence != nil && strings.HasPrefix(line, sequence[0]) {
				now = now.apply(sequence[1])
				line = line[len(sequence[0]):]
				continue
			}
			run := line
			if next := strings.IndexByte(line, '\x1b'); next > 0 {
				run = line[:next]
			}
			line = line[len(run):]
			width := utf8.RuneCountInString(run) // no wide characters in the demo
			x := margin + float64(column)*cellWidth
			column += width
			if now.background != "" {
				fmt.Fprintf(&boxes, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, float64(width)*cellWidth, cellHeight, now.background)
			}
			for _, at := range phrase.FindAllStringIndex(run, -1) {
				before, text := utf8.RuneCountInString(run[:at[0]]), run[at[0]:at[1]]
				fmt.Fprintf(&texts, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
					x+float64(before)*cellWidth, y+cellHeight*0.75, float64(utf8.RuneCountInString(text))*cellWidth, now.attributes(), html.EscapeString(text))
			}
		}
		columns = max(columns, column)
	}
	width, height := float64(columns)*cellWidth+2*margin, float64(len(lines))*cellHeight+2*margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="Goblin in a terminal">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:%s}</style>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
%s%s</svg>
`, width, height, foreground, background, boxes.String(), texts.String())
}

// attributes returns the style as attributes of a text.
func (s style) attributes() string {
	var all string
	if s.foreground != "" {
		all += ` style="fill:` + s.foreground + `"`
	}
	if s.bold {
		all += ` font-weight="bold"`
	}
	if s.underlined {
		all += ` text-decoration="underline"`
	}
	return all
}

// apply returns the style after an SGR sequence (ECMA-48 8.3.117). It knows the
// parameters that themes use with 256 colors.
func (s style) apply(parameters string) style {
	numbers := strings.Split(parameters, ";")
	for i := 0; i < len(numbers); i++ {
		n, _ := strconv.Atoi(numbers[i])
		color := ""
		if (n == 38 || n == 48) && i+2 < len(numbers) {
			color = xterm(numbers[i+2])
			i += 2
		}
		switch n {
		case 0:
			s = style{}
		case 1:
			s.bold = true
		case 22:
			s.bold = false
		case 4:
			s.underlined = true
		case 24:
			s.underlined = false
		case 38, 39:
			s.foreground = color
		case 48, 49:
			s.background = color
		}
	}
	return s
}

// xterm returns a color of xterm's cube of 216 or its 24 shades of grey.
func xterm(index string) string {
	n, _ := strconv.Atoi(index)
	if n >= 232 {
		shade := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", shade, shade, shade)
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
