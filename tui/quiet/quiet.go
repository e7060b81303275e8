// Package quiet keeps programs that import Bubble Tea from asking the terminal
// for its background before main begins, which writes to it and waits up to
// 5 s for an answer. A screen asks for itself, when one is shown.
//
// Bubble Tea's init asks lipgloss's default renderer; here it is told the
// answer first. Go initialises packages in the order of their import paths, as
// far as imports allow, so this one needs a path before github.com and thereby
// a module of its own. A blank import in main is all its use.
package quiet

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
