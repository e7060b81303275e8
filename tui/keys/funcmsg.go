package keys

import tea "github.com/charmbracelet/bubbletea"

// FuncMsg is a message with a function that Update runs. Commands do the slow work and
// return a FuncMsg, which changes the model on the Update goroutine.
type FuncMsg func() tea.Cmd
