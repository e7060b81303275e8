package keys

import tea "github.com/charmbracelet/bubbletea"

// FuncMsg is a message with a function that Update runs. Commands do what can wait and
// return a FuncMsg, which changes the model in the goroutine of Update.
type FuncMsg func() tea.Cmd
