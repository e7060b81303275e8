package command

import (
	"io"
	"strings"

	"goblin/registry/termtext"
)

func (a *App) print(value any, text func() error) error {
	if a.asJSON {
		return a.printJSON(value)
	}
	return text()
}

// printResult prints value with --json, otherwise text unless it is empty.
func (a *App) printResult(value any, text string) error {
	return a.print(value, func() error {
		if text == "" {
			return nil
		}
		return a.printText(text)
	})
}

func (a *App) printJSON(v any) error {
	text, err := termtext.EncodeJSON(v, "  ")
	if err == nil {
		_, err = io.WriteString(a.Out, a.JSONForLog(text)+"\n")
	}
	return err
}

// printText adds a missing newline. On a terminal it escapes control characters.
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
