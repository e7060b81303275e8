// Package work lets commands hand back a function that Update runs.
//
// A command does what can wait and returns a [Done], which changes the model
// where alone that is allowed. The package knows no model.
package work

import tea "github.com/charmbracelet/bubbletea"

// Done is a message that carries what is to be done with a result. Commands
// return it, Update runs it.
type Done func() tea.Cmd
