package tui

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/images"
	"goblin/tui/pane"
)

// paintedUI is a UI with its painter and a model of a terminal.
type paintedUI struct {
	*testUI
	terminal *modelTerminal
	out      *output
	paint    *painter
	shown    []string
}

func newPaintedUI(t *testing.T, mode string, env map[string]string, facts images.TerminalReply) *paintedUI {
	t.Helper()
	r := newTestUI(t, 120, 40, "one")
	r.term.env, r.term.facts = env, facts
	r.app.o.Images = mode
	r.app.setImages()
	r.app.SetTheme()
	s := &paintedUI{testUI: r, terminal: newModelTerminal(t, 120, 40)}
	s.out = &output{w: s.terminal, beforeLeave: func() []byte { return r.app.images.Free() }}
	s.paint = newPainter(s.out, r.app.images)
	_, _ = s.out.Write([]byte(enterScreen))
	return s
}

func (s *paintedUI) frame() map[[2]int]string {
	s.t.Helper()
	s.screen() // checks the widths
	lines := strings.Split(s.app.View(), "\n")
	require.True(s.t, s.paint.paint(s.shown, lines))
	s.shown = lines
	return s.terminal.imaged()
}

// picture returns an image with red above, white below, and its own shade at the left.
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
	facts images.TerminalReply
	want  images.Protocol
}{
	"kitty": {map[string]string{"TERM": "xterm-kitty"}, images.TerminalReply{Kitty: true, CellWidth: cellWide, CellHeight: cellHigh}, images.Kitty},
	"iterm": {map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, images.TerminalReply{Sixel: true, CellWidth: cellWide, CellHeight: cellHigh}, images.ITerm},
	"sixel": {map[string]string{"TERM": "foot"}, images.TerminalReply{Sixel: true, CellWidth: cellWide, CellHeight: cellHigh}, images.Sixel},
}

// reads opens a resource that is an image.
func (s *paintedUI) reads(t *testing.T, w, h int) *paintedUI {
	s.setReady("one").setList("one", registry.Resource, `{"uri":"pic://a","name":"a","mimeType":"image/png"}`)
	s.setAnswer("resources/read", `{"contents":[{"uri":"pic://a","mimeType":"image/png","blob":"`+picture(t, w, h, 0)+`"}]}`)
	s.keys("4 G enter")
	return s
}

func TestImagesAreDrawnByWhatTheTerminalHas(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPaintedUI(t, "auto", p.env, p.facts).reads(t, 320, 180)
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
			require.Less(t, len(covered), len(all), "help covers it")
			for at := range covered {
				require.NotEmpty(t, all[at])
			}
			for y, line := range strings.Split(s.screen(), "\n") {
				got := ""
				for x, r := range []rune(ansi.Strip(line)) { // one cell each, except for marks
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
			require.Empty(t, s.frame(), "another pane must not show it")
			if p.want == images.Kitty {
				require.Equal(t, 1, s.terminal.loads, "kitty must still have it")
			}
			s.keys("4")
			require.Len(t, s.frame(), 40*10)
			_, _ = s.out.Write([]byte(leaveScreen))
			require.Empty(t, s.terminal.kept, "kitty must have freed everything")
		})
	}
}

func TestPartsOfImagesAreDrawn(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPaintedUI(t, "auto", p.env, p.facts).reads(t, 320, 1800)
			s.keys("tab g")
			s.frame()
			whole := s.terminal.imaged()
			require.NotEmpty(t, whole)
			before, white := whole, 0
			for key := range strings.FieldsSeq("j j j ctrl+d ctrl+d ctrl+d ctrl+d") {
				top, _, _ := s.app.Details[pane.PaneResources].View.Position()
				s.keys(key)
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
			require.NotZero(t, white, "its lower half must be visible")
			s.keys("g")
			require.Equal(t, whole, s.frame())
		})
	}
}

func TestImagesAreSentAgainToATerminalThatShowedSomethingElse(t *testing.T) {
	t.Parallel()
	p := protocols["kitty"]
	s := newPaintedUI(t, "auto", p.env, p.facts).reads(t, 320, 180)
	require.Len(t, s.frame(), 400)
	s.terminal.kept, s.shown = map[int]*modelImage{}, nil
	s.terminal.clear()
	s.run(s.app.resized()) // as after a pager
	require.Len(t, s.frame(), 400)
	require.Equal(t, 2, s.terminal.loads)
}

func TestImagesInTmuxGoThroughIt(t *testing.T) {
	t.Parallel()
	s := newPaintedUI(t, "kitty", map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x"}, images.TerminalReply{}).reads(t, 100, 100)
	require.Len(t, s.frame(), 24*12)
	require.Equal(t, 1, s.terminal.loads)

	s = newPaintedUI(t, "auto", map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x", "COLORTERM": "truecolor"}, images.TerminalReply{}).reads(t, 100, 100)
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), "▀▀▀▀")

	s = newPaintedUI(t, "off", protocols["kitty"].env, protocols["kitty"].facts).reads(t, 100, 100)
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), "89 50 4e 47", "its bytes")
	require.Contains(t, s.screen(), "100 x 100 pixels")
}

func TestForeignTextIsNoImage(t *testing.T) {
	t.Parallel()
	p := protocols["kitty"]
	s := newPaintedUI(t, "auto", p.env, p.facts).reads(t, 320, 180)
	require.NotEmpty(t, s.frame())
	cell := string(kitty.Placeholder) + strings.Repeat(string(kitty.Diacritic(0)), 3)
	s.setAnswer("resources/read", `{"contents":[{"uri":"pic://a","text":"see `+strings.Repeat(cell, 20)+`"}]}`)
	s.keys("r")
	require.Empty(t, s.frame())
	require.Contains(t, s.screen(), `\U0010eeee`)
}
