// Package work is what commands hand back: a function that Update runs.
//
// A command does what can wait and returns a [Done], which changes the model
// where alone that is allowed. The package knows no model.
package work

import (
	"sync/atomic"

	tea "github.com/charmbracelet/bubbletea"
)

// Done is a message that carries what is to be done with a result. Commands
// return it, Update runs it.
type Done func() tea.Cmd

// Afterwards runs then, once, when all that a command leads to has been done.
func Afterwards(cmd tea.Cmd, then func() tea.Cmd) tea.Cmd {
	if cmd == nil {
		return then()
	}
	left := new(atomic.Int64) // branches of cmd that are not done yet
	left.Store(1)
	return branch(cmd, left, then)
}

func branch(cmd tea.Cmd, left *atomic.Int64, then func() tea.Cmd) tea.Cmd {
	over := func() tea.Cmd {
		if left.Add(-1) == 0 {
			return then()
		}
		return nil
	}
	return func() tea.Msg {
		switch msg := cmd().(type) {
		case nil:
			return Done(over)
		case Done:
			return Done(func() tea.Cmd {
				if next := msg(); next != nil {
					return branch(next, left, then)
				}
				return over()
			})
		case tea.BatchMsg:
			all := make(tea.BatchMsg, 0, len(msg)+1)
			for _, c := range msg {
				if c != nil {
					left.Add(1)
					all = append(all, branch(c, left, then))
				}
			}
			// The batch itself counts until all of its branches do.
			return append(all, func() tea.Msg { return Done(over) })
		default:
			return tea.BatchMsg{func() tea.Msg { return msg }, func() tea.Msg { return Done(over) }}
		}
	}
}
