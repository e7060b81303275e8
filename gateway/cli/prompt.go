package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"goblin/registry/termtext"
)

// Say writes a line to stderr.
func (a *App) Say(format string, args ...any) {
	fmt.Fprintln(a.Err, termtext.Line(fmt.Sprintf(format, args...)))
}

// Ask writes a prompt to stderr and returns the user's line, without surrounding spaces.
// It returns when ctx ends.
func (a *App) Ask(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(a.Err, termtext.Line(prompt)+" ")
	text, err := wait(ctx, func() (string, error) { return readLine(a.In) })
	return strings.TrimSpace(text), err
}

// AskHidden is like Ask, but the terminal doesn't show the input.
func (a *App) AskHidden(ctx context.Context, prompt string) (string, error) {
	f, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return a.Ask(ctx, prompt)
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("hide the input: %w", err)
	}
	fmt.Fprint(a.Err, termtext.Line(prompt)+" ")
	text, err := wait(ctx, func() (string, error) {
		text, err := term.ReadPassword(int(f.Fd()))
		return string(text), err
	})
	if ctx.Err() != nil { // ReadPassword still waits and would leave the echo disabled
		_ = term.Restore(int(f.Fd()), before)
	}
	fmt.Fprintln(a.Err)
	return text, err
}

// Confirm asks a question and reports whether the answer is yes.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	text, err := a.Ask(ctx, question+" [y/N]")
	text = strings.ToLower(text)
	return text == "y" || text == "yes", err
}

func wait(ctx context.Context, read func() (string, error)) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the line or the process
		text, err := read()
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, io.EOF) {
			return "", Fail(CodeUsage, "stdin closed before the answer")
		}
		return o.text, o.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// maxLine is the maximum length of an answer, in bytes.
const maxLine = 64 << 10

// readLine doesn't buffer, because the next reader needs the following bytes.
func readLine(in io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return string(line), nil
		case n == 1:
			if line = append(line, one[0]); len(line) > maxLine {
				return "", errors.New("the line is too long")
			}
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
}
