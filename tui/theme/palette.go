package theme

// Palette is the set of a theme's styles, named by meaning.
type Palette struct {
	Bold, Dim, Underline Style

	Title             Style // names of panes, headings, dialogs
	Accent            Style // the open tab, the focused border
	Border            Style
	Key               Style // keys in footer and help
	Selected          Style // row under the cursor, with the focus
	SelectedUnfocused Style // row under the cursor, without the focus
	Match             Style // matches of a filter or search
	Changed           Style // recently changed lines and rows
	Stale             Style // outdated content

	Good, Warn, Bad Style // states; each has a mark, too

	// Parts of JSON and Markdown.
	Name, String, Number, Word, Punct, Code, Heading, Link Style
}

// sixteen uses the terminal's own colours, so it fits any background.
var sixteen = Palette{
	Bold: "\x1b[1m", Dim: "\x1b[2m", Underline: "\x1b[4m",
	Title: "\x1b[1m", Accent: "\x1b[1;36m", Border: "\x1b[2m", Key: "\x1b[36m",
	Selected: reverse, SelectedUnfocused: "\x1b[1m", Match: "\x1b[1;4;33m", Changed: "\x1b[33m", Stale: "\x1b[2m",
	Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[1;31m",
	Name: "\x1b[34m", String: "\x1b[32m", Number: "\x1b[35m", Word: "\x1b[33m", Punct: "\x1b[2m",
	Code: "\x1b[36m", Heading: "\x1b[1;34m", Link: "\x1b[4;36m",
}

// dark and light are readable on their backgrounds and on selected rows.
var dark = Palette{
	Bold: "\x1b[1m", Dim: "\x1b[38;5;248m", Underline: "\x1b[4m",
	Title: "\x1b[1;38;5;255m", Accent: "\x1b[1;38;5;114m", Border: "\x1b[38;5;240m", Key: "\x1b[38;5;114m",
	Selected: "\x1b[48;5;237m", SelectedUnfocused: "\x1b[48;5;235m", Match: "\x1b[1;4;38;5;221m", Changed: "\x1b[38;5;221m", Stale: "\x1b[38;5;248m",
	Good: "\x1b[38;5;114m", Warn: "\x1b[38;5;221m", Bad: "\x1b[1;38;5;210m",
	Name: "\x1b[38;5;111m", String: "\x1b[38;5;151m", Number: "\x1b[38;5;183m", Word: "\x1b[38;5;216m", Punct: "\x1b[38;5;248m",
	Code: "\x1b[38;5;151m", Heading: "\x1b[1;38;5;111m", Link: "\x1b[4;38;5;117m",
}

var light = Palette{
	Bold: "\x1b[1m", Dim: "\x1b[38;5;240m", Underline: "\x1b[4m",
	Title: "\x1b[1;38;5;232m", Accent: "\x1b[1;38;5;22m", Border: "\x1b[38;5;249m", Key: "\x1b[38;5;22m",
	Selected: "\x1b[48;5;253m", SelectedUnfocused: "\x1b[48;5;255m", Match: "\x1b[1;4;38;5;58m", Changed: "\x1b[38;5;58m", Stale: "\x1b[38;5;240m",
	Good: "\x1b[38;5;22m", Warn: "\x1b[38;5;58m", Bad: "\x1b[1;38;5;124m",
	Name: "\x1b[38;5;25m", String: "\x1b[38;5;22m", Number: "\x1b[38;5;90m", Word: "\x1b[38;5;58m", Punct: "\x1b[38;5;240m",
	Code: "\x1b[38;5;23m", Heading: "\x1b[1;38;5;25m", Link: "\x1b[4;38;5;25m",
}

// attributes has no colours, for NO_COLOR. https://no-color.org allows bold, underline
// and reverse.
var attributes = Palette{
	Bold: "\x1b[1m", Underline: "\x1b[4m",
	Title: "\x1b[1m", Accent: "\x1b[1m", Key: "\x1b[1m",
	Selected: reverse, SelectedUnfocused: "\x1b[1m", Match: "\x1b[1;4m", Changed: "\x1b[1m",
	Bad: "\x1b[1m", Heading: "\x1b[1m", Link: "\x1b[4m",
}

// Glyphs are the symbols and borders of a theme. Each is one cell wide.
type Glyphs struct {
	ASCII bool

	Cursor, Tick, On, Asked, Refused    string
	Up, Starting, Disabled, Failed      string
	Template, Delta, New, To, From, Sep string
	Folded, Unfolded                    string // marks of rows
	Ellipsis, Check, Box, Edge          string
	Rising, Falling                     string // sort order of columns

	TopLeft, TopRight, BottomLeft, BottomRight     string
	Horizontal, Vertical, TeeLeft, TeeRight, Cross string
}

var unicodeGlyphs = Glyphs{
	Cursor: ">", Tick: "▪", On: "●", Asked: "◌", Refused: "!",
	Up: "●", Starting: "◐", Disabled: "○", Failed: "!",
	Template: "◇", Delta: "Δ", New: "+", To: "→", From: "←", Sep: "·", Folded: "▸", Unfolded: "▾",
	Ellipsis: "…", Check: "✓", Box: "☐", Edge: "▎",
	Rising: "↑", Falling: "↓",
	TopLeft: "╭", TopRight: "╮", BottomLeft: "╰", BottomRight: "╯",
	Horizontal: "─", Vertical: "│", TeeLeft: "├", TeeRight: "┤", Cross: "┼",
}

var asciiGlyphs = Glyphs{
	ASCII:  true,
	Cursor: ">", Tick: "#", On: "*", Asked: "~", Refused: "!",
	Up: "*", Starting: "~", Disabled: "-", Failed: "!",
	Template: "&", Delta: "^", New: "+", To: ">", From: "<", Sep: "-", Folded: "+", Unfolded: "-",
	Ellipsis: ".", Check: "x", Box: "_", Edge: "|",
	Rising: "^", Falling: "v",
	TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+",
	Horizontal: "-", Vertical: "|", TeeLeft: "+", TeeRight: "+", Cross: "+",
}
