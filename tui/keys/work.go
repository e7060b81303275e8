// Work lets commands hand back a function that Update runs.
//
// A command does what can wait and returns a [Done], which changes the model
// where alone that is allowed. The package knows no model.

package keys

import tea "github.com/charmbracelet/bubbletea"

// FuncMsg is a message that carries what is to be done with a result. Commands
// return it, Update runs it.
type FuncMsg func() tea.Cmd
