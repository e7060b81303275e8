// Package images draws images with the kitty, iTerm2 or sixel protocol, or with blocks.
//
// In a line, an image is text: kitty's placeholders (U+10EEEE), one per cell, with
// diacritics that encode the image and the cell. Code that cuts, moves or covers lines
// therefore needs no knowledge of images. Kitty draws the placeholders itself. For other
// terminals [Renderer.Text] replaces them with blanks, over which [Renderer.Draw] puts
// the image. goblin/registry/termtext escapes placeholders in untrusted text.
//
// An [Image] is encoded again from decoded pixels, so no byte of a file reaches the
// terminal. A [Renderer] serves one terminal and holds at most 64 images and 64 MiB of
// pixels. Any goroutine may create images and lines, but only the writer of the terminal
// may call Before, Draw and Free. The package must not import content, keys or panes.
package images

import (
	"slices"
	"strings"
)

// Protocol is a way to draw images.
type Protocol uint8

// The protocols.
const (
	None  Protocol = iota
	Kitty          // https://sw.kovidgoyal.net/kitty/graphics-protocol/
	ITerm          // https://iterm2.com/documentation-images.html
	Sixel          // https://vt100.net/docs/vt3xx-gp/chapter14.html
)

// Off is the mode that draws no images, not even as blocks.
const Off = "off"

// TerminalReply is the parsed reply of a terminal to queries.
type TerminalReply struct {
	Kitty, Sixel bool
	CellWidth    int // in pixels; 0 if unknown
	CellHeight   int
}

// Terminals with iTerm2's protocol. They also report sixel, which proves that the
// variable was not inherited from another terminal.
var inlineTerminals = []string{"iTerm.app", "iTerm2", "WezTerm", "mintty"}

// ChooseProtocol returns the protocol for a terminal. "auto" relies on the terminal's
// reply, and draws nothing in a multiplexer because that replies for itself.
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
