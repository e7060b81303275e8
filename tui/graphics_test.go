package tui

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/charmbracelet/x/ansi/sixel"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/images"
	"goblin/tui/pane"
)

// spot is what one cell of a terminal shows.
type spot struct {
	text     string
	of       *drawn // an image, with the cell of it
	row, col int
}

// drawn is an image that a terminal has.
type drawn struct {
	img        image.Image
	cols, rows int
}

// at is the colour in the middle of a cell.
func (d *drawn) at(row, col int) color.Color {
	b := d.img.Bounds()
	return d.img.At(b.Min.X+(2*col+1)*b.Dx()/(2*d.cols), b.Min.Y+(2*row+1)*b.Dy()/(2*d.rows))
}

// terminal is a model of one that understands all three protocols: text that is written
// over a part of an image takes its place.
type terminal struct {
	t      testing.TB
	w, h   int
	cells  [][]spot
	x, y   int
	colour int
	kept   map[int]*drawn // kitty's, by their ids
	loads  int            // images that were transmitted
	chunks []byte         // of one that is under way
	keys   map[string]string
	most   int // images that kitty had at once
}

func newTerminal(t testing.TB, w, h int) *terminal {
	m := &terminal{t: t, w: w, h: h, kept: map[int]*drawn{}}
	m.clear()
	return m
}

func (m *terminal) clear() {
	m.cells = make([][]spot, m.h)
	for y := range m.cells {
		m.cells[y] = make([]spot, m.w)
	}
}

const (
	cellWide = 8
	cellHigh = 18 // no multiple of six, as sixel has it
)

// Write takes what the screen writes.
func (m *terminal) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1bPtmux;"):
			end := strings.Index(s, "\x1b\\\x1b\\")
			require.GreaterOrEqual(m.t, end, 0)
			inner := strings.ReplaceAll(s[len("\x1bPtmux;"):end+2], "\x1b\x1b", "\x1b")
			_, _ = m.Write([]byte(inner + "\\"))
			s = s[end+4:]
		case strings.HasPrefix(s, "\x1b_G"):
			body, rest, ok := strings.Cut(s[3:], "\x1b\\")
			require.True(m.t, ok, "an APC without end")
			m.kitty(body)
			s = rest
		case strings.HasPrefix(s, "\x1bP"):
			body, rest, ok := strings.Cut(s[2:], "\x1b\\")
			require.True(m.t, ok, "a DCS without end")
			m.sixel(body)
			s = rest
		case strings.HasPrefix(s, "\x1b]1337;"):
			body, rest, ok := strings.Cut(s[len("\x1b]1337;"):], "\a")
			require.True(m.t, ok, "an OSC without end")
			m.inline(body)
			s = rest
		case strings.HasPrefix(s, "\x1b["):
			end := 2
			for s[end] < 0x40 {
				end++
			}
			m.control(s[2:end], s[end])
			s = s[end+1:]
		default:
			cluster, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
			m.put(cluster, w)
			s = s[len(cluster):]
		}
	}
	return len(p), nil
}

func (m *terminal) control(params string, end byte) {
	var n []int
	for f := range strings.SplitSeq(params, ";") {
		v, _ := strconv.Atoi(f)
		n = append(n, v)
	}
	switch end {
	case 'H':
		m.y, m.x = n[0]-1, n[1]-1
	case 'C':
		m.x += n[0]
	case 'm':
		if len(n) == 3 && n[0] == 38 && n[1] == 5 {
			m.colour = n[2]
		} else if n[0] == 0 || n[0] == 39 {
			m.colour = 0
		}
	case 'h', 'l':
	default:
		m.t.Fatalf("CSI %s%c", params, end)
	}
}

func (m *terminal) put(cluster string, w int) {
	require.Less(m.t, m.y, m.h)
	if w == 0 || m.x >= m.w {
		return
	}
	cell := spot{text: cluster}
	if rest, is := strings.CutPrefix(cluster, string(kitty.Placeholder)); is {
		var marks []int
		for _, r := range rest {
			for i := range 297 {
				if kitty.Diacritic(i) == r {
					marks = append(marks, i)
					break
				}
			}
		}
		require.Len(m.t, marks, 3, "a placeholder says all")
		of := m.kept[marks[2]<<24|m.colour]
		require.NotNil(m.t, of, "kitty has the image that is drawn")
		require.Less(m.t, marks[0], of.rows)
		require.Less(m.t, marks[1], of.cols)
		cell = spot{of: of, row: marks[0], col: marks[1]}
	}
	m.cells[m.y][m.x] = cell
	for i := 1; i < w && m.x+i < m.w; i++ {
		m.cells[m.y][m.x+i] = spot{}
	}
	m.x += w
}

func (m *terminal) kitty(body string) {
	head, data, _ := strings.Cut(body, ";")
	keys := map[string]string{}
	for f := range strings.SplitSeq(head, ",") {
		k, v, _ := strings.Cut(f, "=")
		keys[k] = v
	}
	require.Equal(m.t, "2", keys["q"], "kitty must not answer")
	id, _ := strconv.Atoi(keys["i"])
	if keys["a"] == "d" {
		require.Equal(m.t, "I", keys["d"], "with its data")
		require.Contains(m.t, m.kept, id)
		delete(m.kept, id)
		return
	}
	if m.chunks == nil {
		m.keys = keys
	}
	require.LessOrEqual(m.t, len(data), kitty.MaxChunkSize)
	m.chunks = append(m.chunks, data...)
	if keys["m"] == "1" {
		return
	}
	raw, err := base64.StdEncoding.DecodeString(string(m.chunks))
	require.NoError(m.t, err)
	m.chunks = nil
	require.Equal(m.t, "T 1 100", m.keys["a"]+" "+m.keys["U"]+" "+m.keys["f"])
	id, _ = strconv.Atoi(m.keys["i"])
	require.NotContains(m.t, m.kept, id)
	m.kept[id] = m.picture(raw, m.keys["c"], m.keys["r"])
	m.loads++
	m.most = max(m.most, len(m.kept))
}

func (m *terminal) picture(raw []byte, cols, rows string) *drawn {
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(m.t, err)
	d := &drawn{img: img}
	d.cols, _ = strconv.Atoi(cols)
	d.rows, _ = strconv.Atoi(rows)
	return d
}

func (m *terminal) inline(body string) {
	found := regexp.MustCompile(`^File=inline=1;size=(\d+);width=(\d+);height=(\d+);preserveAspectRatio=0;doNotMoveCursor=1:(.*)$`).FindStringSubmatch(body)
	require.NotNil(m.t, found, "%.100q", body)
	raw, err := base64.StdEncoding.DecodeString(found[4])
	require.NoError(m.t, err)
	require.Equal(m.t, found[1], strconv.Itoa(len(raw)))
	m.loads++
	m.over(m.picture(raw, found[2], found[3]))
}

func (m *terminal) sixel(body string) {
	data, ok := strings.CutPrefix(body, "0;1;0q")
	require.True(m.t, ok, "%.20q", body)
	img, err := (&sixel.Decoder{}).Decode(strings.NewReader(data))
	require.NoError(m.t, err)
	var w, h int
	_, err = fmt.Sscanf(data, "\"1;1;%d;%d", &w, &h)
	require.NoError(m.t, err)
	require.Zero(m.t, w%cellWide+h%cellHigh, "whole cells")
	m.loads++
	m.over(&drawn{img: img, cols: w / cellWide, rows: h / cellHigh})
}

// over draws an image from the cursor on, which no terminal has to scroll for.
func (m *terminal) over(d *drawn) {
	require.LessOrEqual(m.t, m.x+d.cols, m.w)
	require.Less(m.t, m.y+d.rows, m.h)
	for y := range d.rows {
		for x := range d.cols {
			require.Equal(m.t, " ", m.cells[m.y+y][m.x+x].text, "images stand on blanks")
			m.cells[m.y+y][m.x+x] = spot{text: " ", of: d, row: y, col: x}
		}
	}
}

// imaged are the cells that show images, as x, y, and whether they are red or white.
func (m *terminal) imaged() map[[2]int]string {
	all := map[[2]int]string{}
	for y, line := range m.cells {
		for x, c := range line {
			if c.of == nil {
				continue
			}
			_, green, _, _ := c.of.at(c.row, c.col).RGBA()
			all[[2]int{x, y}] = map[bool]string{true: "white", false: "red"}[green > 0x8000]
		}
	}
	return all
}

// showing is a screen with its painter on a terminal.
type showing struct {
	*rig
	terminal *terminal
	out      *output
	paint    *painter
	shown    []string
}

func showingOn(t *testing.T, mode string, env map[string]string, facts images.Facts) *showing {
	t.Helper()
	r := newRig(t, 120, 40, "one")
	r.term.env, r.term.facts = env, facts
	r.app.o.Images = mode
	r.app.setImages()
	r.app.SetTheme()
	s := &showing{rig: r, terminal: newTerminal(t, 120, 40)}
	s.out = &output{w: s.terminal, before: func() []byte { return r.app.images.Free() }}
	s.paint = newPainter(s.out, r.app.images)
	_, _ = s.out.Write([]byte(enterScreen))
	return s
}

// frame paints what the screen shows now.
func (s *showing) frame() map[[2]int]string {
	s.t.Helper()
	s.screen() // checks the widths
	lines := strings.Split(s.app.View(), "\n")
	require.True(s.t, s.paint.paint(s.shown, lines))
	s.shown = lines
	return s.terminal.imaged()
}

// picture is red above and white below, and of a shade of its own at the left.
func picture(t testing.TB, w, h int, shade uint8) string {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{255, 0, 0, 255}
			if y >= h/2 {
				c = color.NRGBA{255, 255, 255, 255}
			}
			if x == 0 {
				c.B = shade
			}
			img.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

var protocols = map[string]struct {
	env   map[string]string
	facts images.Facts
	want  images.Protocol
}{
	"kitty": {map[string]string{"TERM": "xterm-kitty"}, images.Facts{Kitty: true, CellWidth: cellWide, CellHeight: cellHigh}, images.Kitty},
	"iterm": {map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, images.Facts{Sixel: true, CellWidth: cellWide, CellHeight: cellHigh}, images.ITerm},
	"sixel": {map[string]string{"TERM": "foot"}, images.Facts{Sixel: true, CellWidth: cellWide, CellHeight: cellHigh}, images.Sixel},
}

// reads opens a resource that is an image.
func (s *showing) reads(t *testing.T, w, h int) *showing {
	s.ready("one").list("one", registry.Resource, `{"uri":"pic://a","name":"a","mimeType":"image/png"}`)
	s.answer("resources/read", `{"contents":[{"uri":"pic://a","mimeType":"image/png","blob":"`+picture(t, w, h, 0)+`"}]}`)
	s.keys("4 G enter")
	return s
}

func TestImagesAreDrawnByWhatTheTerminalHas(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := showingOn(t, "auto", p.env, p.facts).reads(t, 320, 180)
			require.Equal(t, p.want, s.app.images.Protocol())
			require.Regexp(t, `image +png, 320 x 180 pixels`, s.screen())
			require.Regexp(t, `size +\d+ B`, s.screen())

			all := s.frame()
			require.Len(t, all, 40*10, "320 x 180 pixels are 40 x 10 cells of 8 x 18")
			first := [2]int{200, 200}
			for at := range all {
				first[0], first[1] = min(first[0], at[0]), min(first[1], at[1])
			}
			for at, colour := range all {
				want := "red"
				if at[1]-first[1] >= 5 {
					want = "white"
				}
				require.Equal(t, want, colour, at)
			}
			require.Equal(t, 1, s.terminal.loads)

			require.Equal(t, all, s.frame(), "nothing changed")
			require.Equal(t, 1, s.terminal.loads)

			s.keys("space")
			require.Equal(t, all, s.frame(), "the list beside it changed")
			require.Equal(t, 1, s.terminal.loads, "the image is there")

			s.keys("?")
			covered := s.frame()
			require.Less(t, len(covered), len(all), "help stands over it")
			for at := range covered {
				require.NotEmpty(t, all[at])
			}
			for y, line := range strings.Split(s.screen(), "\n") {
				got := ""
				for x, r := range []rune(ansi.Strip(line)) { // of one cell each, but for marks
					if r == kitty.Placeholder {
						break
					}
					got += s.terminal.cells[y][x].text
				}
				require.True(t, strings.HasPrefix(line, got), "%q\n%q", line, got)
			}
			s.keys("esc")
			require.Equal(t, all, s.frame(), "and is whole again")

			s.keys("2")
			require.Empty(t, s.frame(), "another pane shows none of it")
			if p.want == images.Kitty {
				require.Equal(t, 1, s.terminal.loads, "kitty keeps it")
			}
			s.keys("4")
			require.Len(t, s.frame(), 40*10)
			_, _ = s.out.Write([]byte(leaveScreen))
			require.Empty(t, s.terminal.kept, "kitty keeps nothing")
		})
	}
}

func TestPartsOfImagesAreDrawn(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := showingOn(t, "auto", p.env, p.facts).reads(t, 320, 1800)
			s.keys("tab g")
			s.frame()
			whole := s.terminal.imaged()
			require.NotEmpty(t, whole)
			before, white := whole, 0
			for range 30 {
				top, _, _ := s.app.Details[pane.PaneResources].View.Position()
				s.keys("j")
				all := s.frame()
				after, _, _ := s.app.Details[pane.PaneResources].View.Position()
				for at, colour := range all {
					require.True(t, at[1] > 2 && at[1] < 37, "only inside the panel")
					if was, is := before[[2]int{at[0], at[1] + after - top}]; is {
						require.Equal(t, was, colour, "it moved with the text")
					}
					if colour == "white" {
						white++
					}
				}
				before = all
			}
			require.NotZero(t, white, "its lower half came into sight")
			s.keys("g")
			require.Equal(t, whole, s.frame())
		})
	}
}

func TestTheTerminalKeepsABoundedNumberOfImages(t *testing.T) {
	t.Parallel()
	terminal, g := newTerminal(t, 80, 24), &images.Gallery{}
	g.Set(images.Kitty, protocols["kitty"].facts, false, 7)
	show := func(shade uint8, cols, rows int) {
		img := image.NewGray(image.Rect(0, 0, 1, 1))
		img.Pix[0] = shade
		m, err := g.Image(img, cols, rows)
		require.NoError(t, err)
		line := g.Row(m, 0, 0, 2)
		_, _ = terminal.Write(append(g.Before([]string{line}), "\x1b[1;1H"+line...))
		require.NotNil(t, terminal.cells[0][0].of)
	}
	for i := range 200 {
		show(uint8(i), 2, 1)
	}
	require.Equal(t, 200, terminal.loads)
	require.LessOrEqual(t, terminal.most, 64)
	for i := range 7 { // of 2.8 million pixels each
		show(uint8(i), 200, 70)
	}
	pixels := 0
	for _, d := range terminal.kept {
		pixels += d.img.Bounds().Dx() * d.img.Bounds().Dy()
	}
	require.LessOrEqual(t, pixels, 16<<20)
	_, _ = terminal.Write(g.Free())
	require.Empty(t, terminal.kept)
	g.Lost()
	require.Empty(t, g.Free())
}

func TestImagesAreSentAgainToATerminalThatShowedSomethingElse(t *testing.T) {
	t.Parallel()
	p := protocols["kitty"]
	s := showingOn(t, "auto", p.env, p.facts).reads(t, 320, 180)
	require.Len(t, s.frame(), 400)
	s.terminal.kept, s.shown = map[int]*drawn{}, nil
	s.terminal.clear()
	s.run(s.app.resized()) // as after a pager
	require.Len(t, s.frame(), 400)
	require.Equal(t, 2, s.terminal.loads)
}

func TestWhatIsAskedForDecidesHowImagesAreDrawn(t *testing.T) {
	t.Parallel()
	all := images.Facts{Kitty: true, Sixel: true, CellWidth: 8, CellHeight: 16}
	for name, c := range map[string]struct {
		mode  string
		env   map[string]string
		facts images.Facts
		want  images.Protocol
	}{
		"nothing is known":             {"", nil, images.Facts{}, images.None},
		"a name alone is no answer":    {"", map[string]string{"TERM": "xterm-kitty", "TERM_PROGRAM": "iTerm.app"}, images.Facts{}, images.None},
		"kitty answers":                {"", map[string]string{"TERM": "xterm-kitty"}, all, images.Kitty},
		"WezTerm":                      {"auto", map[string]string{"TERM_PROGRAM": "WezTerm"}, images.Facts{Sixel: true}, images.ITerm},
		"iTerm2 over SSH":              {"auto", map[string]string{"LC_TERMINAL": "iTerm2"}, images.Facts{Sixel: true}, images.ITerm},
		"sixel":                        {"auto", nil, images.Facts{Sixel: true, CellWidth: 8, CellHeight: 16}, images.Sixel},
		"sixel of unknown cells":       {"auto", nil, images.Facts{Sixel: true}, images.None},
		"in tmux":                      {"auto", map[string]string{"TMUX": "/tmp/x"}, all, images.None},
		"in screen":                    {"auto", map[string]string{"TERM": "screen-256color"}, all, images.None},
		"no colours":                   {"auto", map[string]string{"NO_COLOR": "1"}, all, images.None},
		"half blocks":                  {"blocks", nil, all, images.None},
		"off":                          {"off", nil, all, images.None},
		"kitty whatever it says":       {"kitty", map[string]string{"TMUX": "/tmp/x"}, images.Facts{}, images.Kitty},
		"iTerm's whatever it says":     {"iterm", nil, images.Facts{}, images.ITerm},
		"sixel whatever it says of it": {"sixel", nil, images.Facts{}, images.Sixel},
	} {
		require.Equal(t, c.want, images.Choose(c.mode, func(k string) string { return c.env[k] }, c.facts), name)
	}
}

func TestImagesInTmuxGoThroughIt(t *testing.T) {
	t.Parallel()
	s := showingOn(t, "kitty", map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x"}, images.Facts{}).reads(t, 100, 100)
	require.Len(t, s.frame(), 24*12)
	require.Equal(t, 1, s.terminal.loads)

	s = showingOn(t, "auto", map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x", "COLORTERM": "truecolor"}, images.Facts{}).reads(t, 100, 100)
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), "▀▀▀▀")

	s = showingOn(t, "off", protocols["kitty"].env, protocols["kitty"].facts).reads(t, 100, 100)
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), "89 50 4e 47", "its bytes")
	require.Contains(t, s.screen(), "100 x 100 pixels")
}

func TestForeignTextIsNoImage(t *testing.T) {
	t.Parallel()
	p := protocols["kitty"]
	s := showingOn(t, "auto", p.env, p.facts).reads(t, 320, 180)
	require.NotEmpty(t, s.frame())
	cell := string(kitty.Placeholder) + strings.Repeat(string(kitty.Diacritic(0)), 3)
	s.answer("resources/read", `{"contents":[{"uri":"pic://a","text":"see `+strings.Repeat(cell, 20)+`"}]}`)
	s.keys("r")
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), `\U0010eeee`)
}

// FuzzCells: whatever stands in lines, what is made of them for the terminal is whole.
func FuzzCells(f *testing.F) {
	cell := string(kitty.Placeholder) + strings.Repeat(string(kitty.Diacritic(1)), 3)
	f.Add("a"+cell+cell+"b", cell)
	f.Add(string(kitty.Placeholder), "\x1b[38;5;1m"+cell+"\u0305")
	f.Fuzz(func(t *testing.T, old, line string) {
		for _, p := range []images.Protocol{images.None, images.Kitty, images.ITerm, images.Sixel} {
			g := &images.Gallery{}
			g.Set(p, images.Facts{}, false, 1)
			m, err := g.Image(image.NewGray(image.Rect(0, 0, 20, 20)), 2, 2)
			require.NoError(t, err)
			lines := []string{g.Row(m, 0, 0, 2) + line, line}
			g.Before(lines)
			g.Text(old, line)
			g.Draw([]string{old}, lines)
		}
	})
}
