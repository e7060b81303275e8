// Package theme holds the styles, glyphs and drawing helpers of one terminal.
//
// A [Theme] belongs to one UI and never changes, so any goroutine may call its methods.
// Nothing here is global or looks at the process's own terminal: [Options] describe what
// the UI's terminal can do.
package theme

import (
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/cursor"
	"github.com/charmbracelet/bubbles/spinner"
	"github.com/charmbracelet/bubbles/textarea"
	"github.com/charmbracelet/bubbles/textinput"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"goblin/tui/images"
)

// Style is the escape sequence that switches a style on; "" draws plainly.
type Style string

const (
	reset         = "\x1b[m"
	reverse Style = "\x1b[7m"
)

// On draws text in the style.
func (s Style) On(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}

// Over draws a line that may hold styles of its own on top of this one.
func (s Style) Over(line string) string {
	if s == "" {
		return line
	}
	return string(s) + strings.ReplaceAll(line, reset, reset+string(s)) + reset
}

// Options describe a terminal and the theme to make for it.
type Options struct {
	Theme string // one of [Themes]; "" is "auto"
	// Getenv tells TERM, COLORTERM, NO_COLOR, LANG, LC_ALL and LC_CTYPE of the
	// screen's terminal.
	Getenv func(string) string
	ASCII  bool // draw with ASCII characters only, whatever LANG says
	// Background is "dark" or "light", or "" while it is not known. The theme
	// "auto" uses more than the terminal's own colours only where it is known.
	Background string
	// Images draws images as the terminal can; nil for not at all.
	Images *images.Renderer
	// NoImages leaves images as the bytes that they are.
	NoImages bool
}

// Themes are the names of the themes, in the order in which a key walks them.
func Themes() []string { return []string{"auto", "dark", "light", "none"} }

// Theme is how one UI draws: its colors, glyphs and what the terminal can show.
type Theme struct {
	Variant string // its name: one of [Themes]
	Palette
	Glyphs
	// Colours is how many a picture of blocks may have; 0 for none.
	Colours int
	// Images draws them, where the terminal can; NoImages leaves them as bytes.
	Images   *images.Renderer
	NoImages bool
	// Renderer is for lipgloss styles of this screen; the default renderer
	// looks at the process's stdout, which is somebody else's.
	Renderer *lipgloss.Renderer
}

// New returns the theme for a terminal. NO_COLOR and TERM=dumb select "none"; an unknown
// name selects "auto".
func New(o Options) *Theme {
	env := o.Getenv
	if env == nil {
		env = func(string) string { return "" }
	}
	l := &Theme{Variant: o.Theme, Glyphs: unicodeGlyphs, Images: o.Images, NoImages: o.NoImages}
	dumb := env("TERM") == "dumb"
	if dumb || env("NO_COLOR") != "" {
		l.Variant = "none"
	}
	if o.ASCII || dumb || !utf8Locale(env) {
		l.Glyphs = asciiGlyphs
	}
	colours := l.Variant
	if colours != "dark" && colours != "light" && colours != "none" {
		l.Variant, colours = "auto", o.Background
	}
	profile := termenv.ANSI
	switch {
	case dumb:
		l.Palette, profile = Palette{}, termenv.Ascii
	case colours == "none":
		l.Palette = attributes
	case colours == "dark" && hasManyColours(env):
		l.Palette, profile = dark, termenv.ANSI256
	case colours == "light" && hasManyColours(env):
		l.Palette, profile = light, termenv.ANSI256
	default:
		l.Palette = sixteen
	}
	if !dumb && colours != "none" {
		l.Colours = coloursOf(env)
	}
	l.Renderer = lipgloss.NewRenderer(io.Discard)
	l.Renderer.SetColorProfile(profile)
	l.Renderer.SetHasDarkBackground(colours != "light")
	return l
}

// utf8Locale reports whether the locale's characters are UTF-8. No locale at all
// counts as UTF-8, as it does for the terminals of today.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// coloursOf is how many colours a terminal says that it has.
func coloursOf(env func(string) string) int {
	switch {
	case env("COLORTERM") == "truecolor" || env("COLORTERM") == "24bit":
		return 1 << 24
	case hasManyColours(env):
		return 256
	}
	return 16
}

func hasManyColours(env func(string) string) bool {
	term := env("TERM")
	return env("COLORTERM") != "" || strings.Contains(term, "256color") ||
		strings.Contains(term, "kitty") || strings.Contains(term, "direct") || strings.Contains(term, "ghostty")
}

// Input is a one-line text field in this look, with a cursor that does not
// blink: an idle screen does no work.
func (l *Theme) Input() textinput.Model {
	in := textinput.New()
	plain := l.Renderer.NewStyle()
	faint := l.Renderer.NewStyle().Faint(true)
	in.PromptStyle, in.TextStyle = plain, plain
	in.PlaceholderStyle, in.CompletionStyle = faint, faint
	in.Cursor.Style, in.Cursor.TextStyle = plain, plain
	in.Cursor.SetMode(cursor.CursorStatic)
	in.Prompt = ""
	// The clipboard of the daemon's machine is not that of who looks at it.
	in.KeyMap.Paste.SetEnabled(false)
	in.KeyMap.AcceptSuggestion.SetEnabled(false)
	return in
}

// Area is a text field of several lines in this look.
func (l *Theme) Area() textarea.Model {
	a := textarea.New()
	plain := l.Renderer.NewStyle()
	faint := l.Renderer.NewStyle().Faint(true)
	for _, s := range []*textarea.Style{&a.FocusedStyle, &a.BlurredStyle} {
		s.Base = plain
		s.CursorLine = plain
		s.Text = plain
		s.Prompt = plain
		s.CursorLineNumber = faint
		s.LineNumber = faint
		s.Placeholder = faint
		s.EndOfBuffer = faint
	}
	a.Cursor.Style, a.Cursor.TextStyle = plain, plain
	a.Cursor.SetMode(cursor.CursorStatic)
	a.Prompt = ""
	a.ShowLineNumbers = false
	a.CharLimit = 0
	a.MaxHeight = 0
	a.KeyMap.Paste.SetEnabled(false)
	return a
}

// spinnerFrames are in common fonts, which the usual Braille patterns are not.
var spinnerFrames = []string{"◐", "◓", "◑", "◒"}

// Spinner is the sign of work going on.
func (l *Theme) Spinner() spinner.Model {
	kind := spinner.Spinner{Frames: spinnerFrames, FPS: time.Second / 8}
	if l.ASCII {
		kind = spinner.Line
	}
	return spinner.New(spinner.WithSpinner(kind), spinner.WithStyle(l.Renderer.NewStyle()))
}
