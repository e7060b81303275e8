// Package images draws images with the kitty, iTerm2 or sixel protocol, or with blocks.
//
// On the screen an image is text: kitty's placeholders (U+10EEEE), one a cell, each with
// marks that say of which image it is, and which part. So whatever cuts, moves or covers
// lines treats images right without knowing of them, and nothing of an image stands where
// its cells do not. kitty draws them as they are; for other terminals [Renderer.Text] makes
// blanks of them, over which [Renderer.Draw] puts the part of the image that belongs there.
// Foreign text cannot pretend to be such cells: goblin/registry/termtext escapes them.
//
// An [Image] is made of pixels that were decoded by others, so no byte of a file reaches
// the terminal. A [Renderer] is what one terminal has: at most 64 images and 64 MiB of their
// pixels. Images may be made and lines drawn in any goroutine; what is for the terminal
// belongs to the one that writes there. The package knows no content, no keys and no panes.
package images

import (
	"slices"
	"strings"
)

// Protocol is how a terminal is told to draw an image.
type Protocol uint8

// The protocols.
const (
	None  Protocol = iota
	Kitty          // https://sw.kovidgoyal.net/kitty/graphics-protocol/
	ITerm          // https://iterm2.com/documentation-images.html
	Sixel          // https://vt100.net/docs/vt3xx-gp/chapter14.html
)

// Off is the mode in which images are not drawn at all.
const Off = "off"

// TerminalReply are a terminal's answers.
type TerminalReply struct {
	Kitty, Sixel bool
	CellWidth    int // in pixels; 0: not known
	CellHeight   int
}

// Known terminals that have iTerm2's images; each answers that it has sixel, too, which
// says that the variable was not inherited from another terminal.
var inlineTerminals = []string{"iTerm.app", "iTerm2", "WezTerm", "mintty"}

// ChooseProtocol is how images are drawn on a terminal. A mode other than "auto" is the user's
// word; "auto" takes what the terminal says that it has, and nothing in a multiplexer,
// which says nothing of the terminal around it.
func ChooseProtocol(mode string, getenv func(string) string, f TerminalReply) Protocol {
	switch mode {
	case "kitty":
		return Kitty
	case "iterm":
		return ITerm
	case "sixel":
		return Sixel
	case "blocks", Off:
		return None
	}
	term := getenv("TERM")
	multiplexed := getenv("TMUX") != "" || strings.HasPrefix(term, "screen") || strings.HasPrefix(term, "tmux")
	switch {
	case multiplexed || term == "dumb" || getenv("NO_COLOR") != "":
		return None
	case f.Kitty:
		return Kitty
	case f.Sixel && (slices.Contains(inlineTerminals, getenv("TERM_PROGRAM")) || slices.Contains(inlineTerminals, getenv("LC_TERMINAL"))):
		return ITerm
	case f.Sixel && f.CellWidth > 0 && f.CellHeight > 0:
		return Sixel
	}
	return None
}
