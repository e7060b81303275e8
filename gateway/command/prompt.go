package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"goblin/gateway/cli"
	"goblin/registry/termtext"
)

// prompter asks the user of a terminal, on stderr.
type prompter struct {
	ctx  context.Context
	asks bool // there is somebody to ask
	in   io.Reader
	err  io.Writer
}

func (a *App) prompter(ctx context.Context) *prompter {
	return &prompter{ctx: ctx, asks: a.InTTY, in: a.In, err: a.Err}
}

// say writes a line.
func (p *prompter) say(format string, args ...any) {
	fmt.Fprintln(p.err, termtext.Line(fmt.Sprintf(format, args...)))
}

// line asks for a line.
func (p *prompter) line(prompt string) (string, error) {
	fmt.Fprint(p.err, termtext.Line(prompt)+" ")
	text, err := p.wait(func() (string, error) { return readLine(p.in) })
	return strings.TrimSpace(text), err
}

// hidden asks for a line that the terminal does not show.
func (p *prompter) hidden(prompt string) (string, error) {
	f, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p.line(prompt)
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	fmt.Fprint(p.err, termtext.Line(prompt)+" ")
	text, err := p.wait(func() (string, error) {
		text, err := term.ReadPassword(int(f.Fd()))
		return string(text), err
	})
	if p.ctx.Err() != nil { // the reader goes on, and would leave the terminal mute
		_ = term.Restore(int(f.Fd()), before)
	}
	fmt.Fprintln(p.err)
	return text, err
}

// confirm asks for a yes.
func (p *prompter) confirm(prompt string) (bool, error) {
	text, err := p.line(prompt + " [y/N]")
	text = strings.ToLower(text)
	return text == "y" || text == "yes", err
}

// wait waits for a line, or for the end of the context.
func (p *prompter) wait(read func() (string, error)) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the line, or with the process
		text, err := read()
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, io.EOF) {
			return "", cli.Fail(cli.CodeUsage, "stdin ended before the answer")
		}
		return o.text, o.err
	case <-p.ctx.Done():
		return "", p.ctx.Err()
	}
}

// maxLine bounds an answer, in bytes.
const maxLine = 64 << 10

// readLine reads a line and no byte more: what follows is for the next reader.
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
				return "", errors.New("that line is too long")
			}
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
}
