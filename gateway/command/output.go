package command

import (
	"io"
	"strings"

	"goblin/registry/termtext"
)

// print prints value with --json, and otherwise calls text.
func (a *App) print(value any, text func() error) error {
	if a.asJSON {
		return a.printJSON(value)
	}
	return text()
}

// printResult prints value with --json, and otherwise text, if there is one.
func (a *App) printResult(value any, text string) error {
	return a.print(value, func() error {
		if text == "" {
			return nil
		}
		return a.printText(text)
	})
}

// printJSON prints v as indented JSON that is safe for terminals.
func (a *App) printJSON(v any) error {
	text, err := termtext.EncodeJSON(v, "  ")
	if err == nil {
		_, err = io.WriteString(a.Out, text+"\n")
	}
	return err
}

// printText prints text and adds a missing line break. It is safe for terminals.
func (a *App) printText(text string) error {
	if a.OutTTY {
		text = termtext.Text(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(a.Out, text)
	return err
}
