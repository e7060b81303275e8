package tui

import "github.com/charmbracelet/bubbletea"

// answer opens the question that waits longest.
func (a *app) answer() tea.Cmd { return nil }
