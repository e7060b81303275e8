package images_test

import (
	"encoding/base64"
	"image"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/stretchr/testify/require"

	"goblin/tui/images"
)

func TestWhatIsAskedForDecidesHowImagesAreDrawn(t *testing.T) {
	t.Parallel()
	all := images.TerminalReply{Kitty: true, Sixel: true, CellWidth: 8, CellHeight: 16}
	for name, c := range map[string]struct {
		mode  string
		env   map[string]string
		facts images.TerminalReply
		want  images.Protocol
	}{
		"nothing is known":              {"", nil, images.TerminalReply{}, images.None},
		"a name alone is no answer":     {"", map[string]string{"TERM": "xterm-kitty", "TERM_PROGRAM": "iTerm.app"}, images.TerminalReply{}, images.None},
		"kitty answers":                 {"", map[string]string{"TERM": "xterm-kitty"}, all, images.Kitty},
		"WezTerm":                       {"auto", map[string]string{"TERM_PROGRAM": "WezTerm"}, images.TerminalReply{Sixel: true}, images.ITerm},
		"iTerm2 over SSH":               {"auto", map[string]string{"LC_TERMINAL": "iTerm2"}, images.TerminalReply{Sixel: true}, images.ITerm},
		"sixel":                         {"auto", nil, images.TerminalReply{Sixel: true, CellWidth: 8, CellHeight: 16}, images.Sixel},
		"sixel of unknown cells":        {"auto", nil, images.TerminalReply{Sixel: true}, images.None},
		"in tmux":                       {"auto", map[string]string{"TMUX": "/tmp/x"}, all, images.None},
		"in screen":                     {"auto", map[string]string{"TERM": "screen-256color"}, all, images.None},
		"no colours":                    {"auto", map[string]string{"NO_COLOR": "1"}, all, images.None},
		"half blocks":                   {"blocks", nil, all, images.None},
		"off":                           {"off", nil, all, images.None},
		"kitty regardless of replies":   {"kitty", map[string]string{"TMUX": "/tmp/x"}, images.TerminalReply{}, images.Kitty},
		"iTerm's regardless of replies": {"iterm", nil, images.TerminalReply{}, images.ITerm},
		"sixel regardless of replies":   {"sixel", nil, images.TerminalReply{}, images.Sixel},
	} {
		require.Equal(t, c.want, images.ChooseProtocol(c.mode, func(k string) string { return c.env[k] }, c.facts), name)
	}
}

// FuzzCells checks that the output for the terminal is well-formed, whatever the lines
// contain.
func FuzzCells(f *testing.F) {
	cell := string(kitty.Placeholder) + strings.Repeat(string(kitty.Diacritic(1)), 3)
	f.Add("a"+cell+cell+"b", cell)
	f.Add(string(kitty.Placeholder), "\x1b[38;5;1m"+cell+"\u0305")
	f.Fuzz(func(t *testing.T, old, line string) {
		for _, p := range []images.Protocol{images.None, images.Kitty, images.ITerm, images.Sixel} {
			g := &images.Renderer{}
			g.Set(p, images.TerminalReply{}, false, 1)
			m, err := g.Image(image.NewGray(image.Rect(0, 0, 20, 20)), 2, 2)
			require.NoError(t, err)
			lines := []string{g.Row(m, 0, 0, 2) + line, line}
			g.Before(lines)
			g.Text(old, line)
			g.Draw([]string{old}, lines)
		}
	})
}

// kittyTerminal tracks the images that a terminal with kitty's protocol holds.
type kittyTerminal struct {
	t      *testing.T
	pixels map[string]int // by image id
	loads  int
	most   int // images held at once
}

var kittyCommand = regexp.MustCompile(`\x1b_G([^;\x1b]*);?([^\x1b]*)\x1b\\`)

func (k *kittyTerminal) write(out []byte) (last string) {
	k.t.Helper()
	var data string
	for _, command := range kittyCommand.FindAllStringSubmatch(string(out), -1) {
		keys := map[string]string{}
		for key := range strings.SplitSeq(command[1], ",") {
			name, value, _ := strings.Cut(key, "=")
			keys[name] = value
		}
		switch keys["a"] {
		case "d":
			require.Contains(k.t, k.pixels, keys["i"])
			delete(k.pixels, keys["i"])
			continue
		case "T":
			last = keys["i"]
			data = ""
		}
		data += command[2]
		if keys["m"] == "1" {
			continue
		}
		img, err := png.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
		require.NoError(k.t, err)
		k.pixels[last] = img.Width * img.Height
		k.loads++
		k.most = max(k.most, len(k.pixels))
	}
	return last
}

func TestTheTerminalKeepsABoundedNumberOfImages(t *testing.T) {
	t.Parallel()
	terminal, g := &kittyTerminal{t: t, pixels: map[string]int{}}, &images.Renderer{}
	g.Set(images.Kitty, images.TerminalReply{Kitty: true, CellWidth: 10, CellHeight: 20}, false, 7)
	show := func(shade uint8, cols, rows int) {
		img := image.NewGray(image.Rect(0, 0, 1, 1))
		img.Pix[0] = shade
		m, err := g.Image(img, cols, rows)
		require.NoError(t, err)
		require.Contains(t, terminal.pixels, terminal.write(g.Before([]string{g.Row(m, 0, 0, 2)})), "the image that is drawn is there")
	}
	for i := range 200 {
		show(uint8(i), 2, 1)
	}
	require.Equal(t, 200, terminal.loads)
	require.LessOrEqual(t, terminal.most, 64)
	for i := range 6 {
		show(uint8(i), 200, 70) // 2.8 million pixels each
	}
	pixels := 0
	for _, n := range terminal.pixels {
		pixels += n
	}
	require.LessOrEqual(t, pixels, 16<<20)
	terminal.write(g.Free())
	require.Empty(t, terminal.pixels)
	g.Invalidate()
	require.Empty(t, g.Free())
}
