// Package theme holds the styles, glyphs and drawing helpers of one terminal.
//
// A [Theme] belongs to one UI and never changes, so any goroutine may call its methods.
// The package has no global state and ignores the process's own terminal: [Options]
// describe the UI's terminal.
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

	"goblin/registry/termtext"
	"goblin/tui/images"
)

// Style is the escape sequence of a style, or "" for plain text.
type Style string

const (
	reset         = "\x1b[m"
	reverse Style = "\x1b[7m"
)

// On returns text in the style.
func (s Style) On(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}

// over returns a line, which may contain styles, on top of this style.
func (s Style) over(line string) string {
	if s == "" {
		return line
	}
	return string(s) + strings.ReplaceAll(line, reset, reset+string(s)) + reset
}

// Options describe a terminal and the theme to create for it.
type Options struct {
	Theme string // one of [Themes]; "" is "auto"
	// Getenv returns TERM, COLORTERM, NO_COLOR, LANG, LC_ALL and LC_CTYPE of the UI's
	// terminal.
	Getenv func(string) string
	ASCII  bool // ASCII characters only, regardless of LANG
	// Background is "dark", "light" or "" (unknown). Until it is known, "auto" uses only
	// the terminal's own colours.
	Background string
	// Colors replace the theme's colors, by [termtext.StyleNames]. Without colors they have
	// no effect.
	Colors map[string]termtext.StyleColor
	// Images draws images, or is nil.
	Images *images.Renderer
	// NoImages shows images as bytes.
	NoImages bool
}

// Themes returns the names of the themes, in the order of the key that changes them.
func Themes() []string { return []string{"auto", "dark", "light", "none"} }

// Theme is the look of one UI.
type Theme struct {
	Variant string // one of [Themes]
	Palette
	Glyphs
	// Colours is the maximum number of colours of an image drawn with blocks, or 0.
	Colours int
	// Images draws images if the terminal supports them; NoImages shows bytes instead.
	Images   *images.Renderer
	NoImages bool
	// Renderer creates lipgloss styles for this UI. The default renderer inspects the
	// process's stdout, which belongs to another program.
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
		l.recolor(o.Colors, colours, l.Colours)
	}
	l.Renderer = lipgloss.NewRenderer(io.Discard)
	l.Renderer.SetColorProfile(profile)
	l.Renderer.SetHasDarkBackground(colours != "light")
	return l
}

// Without a locale, utf8Locale returns true, like current terminals.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

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

// Input returns a one-line text field. Its cursor does not blink, so an idle UI does no
// work.
func (l *Theme) Input() textinput.Model {
	in := textinput.New()
	plain := l.Renderer.NewStyle()
	faint := l.Renderer.NewStyle().Faint(true)
	in.PromptStyle, in.TextStyle = plain, plain
	in.PlaceholderStyle, in.CompletionStyle = faint, faint
	in.Cursor.Style, in.Cursor.TextStyle = plain, plain
	in.Cursor.SetMode(cursor.CursorStatic)
	in.Prompt = ""
	// The daemon's clipboard is not the user's.
	in.KeyMap.Paste.SetEnabled(false)
	in.KeyMap.AcceptSuggestion.SetEnabled(false)
	return in
}

// Area returns a text field of several lines.
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

// in common fonts, unlike the usual Braille patterns
var spinnerFrames = []string{"◐", "◓", "◑", "◒"}

var toASCII = strings.NewReplacer("→", ">", "←", "<", "×", "x", "·", "-", "…", "...")

// Own returns a text of Goblin with symbols that the terminal can draw. Texts of servers
// stay as they are.
func (l *Theme) Own(text string) string {
	if l.ASCII {
		return toASCII.Replace(text)
	}
	return text
}

// Spinner returns the theme's spinner.
func (l *Theme) Spinner() spinner.Model {
	kind := spinner.Spinner{Frames: spinnerFrames, FPS: time.Second / 8}
	if l.ASCII {
		kind = spinner.Line
	}
	return spinner.New(spinner.WithSpinner(kind), spinner.WithStyle(l.Renderer.NewStyle()))
}
