package remoteui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/gateway/browser"
)

// grace is the time for a program to exit when the UI exits.
const grace = time.Second

func (r *relay) execute(kind byte, payload []byte) error {
	content := r.content
	r.content = nil
	var o order
	if err := json.Unmarshal(payload, &o); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if r.contentOf != o.ID {
		content = nil // of an abandoned order
	}
	if r.ctx.Err() != nil {
		return nil
	}
	if kind == frameExec && o.Kind == browserOrder {
		a := orderResult{ID: o.ID}
		if err := browser.Open(r.env, o.Name); err != nil {
			a.Error = err.Error()
		}
		r.reply(a)
		return nil
	}
	if !r.busy.CompareAndSwap(false, true) {
		r.reply(orderResult{ID: o.ID, Error: "another program or save of this UI is still running"})
		return nil
	}
	r.tasks.Go(func() {
		a := orderResult{ID: o.ID}
		var err error
		if kind == frameSave {
			a.Path, err = save(o.Name, content)
		} else {
			err = r.show(o, content)
		}
		if err != nil {
			a.Error = err.Error()
		}
		r.busy.Store(false)
		r.reply(a)
	})
	return nil
}

func (r *relay) reply(a orderResult) { r.send.send(jsonFrame(frameDone, a)) }

func (r *relay) show(o order, content []byte) error {
	command := r.command(o.Kind)
	if command == "" {
		return fmt.Errorf("unknown program %q", o.Kind)
	}
	var file string
	if o.Kind == File {
		var line string
		if file, line = splitLine(o.Name); !filepath.IsAbs(file) {
			return fmt.Errorf("%q is not an absolute path", file)
		}
		command, file = editorAtLine(command, file, line)
	} else {
		dir, err := os.MkdirTemp("", "goblin-*") // 0700
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, safeName(o.Name))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
	}
	r.terminalMu.Lock()
	defer r.terminalMu.Unlock()
	r.con.detach()
	err := r.con.run(r.ctx, command, file)
	if r.ctx.Err() != nil || wasKilled(err) {
		r.con.markDirty()
	}
	r.con.restore()
	if r.ctx.Err() == nil {
		r.resumeLocked()
	}
	if exit, ok := errors.AsType[exitError](err); ok && exit.status == statusNotFound {
		err = errors.New("command not found")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// statusNotFound is the exit status of a shell that does not find a program.
const statusNotFound = 127

type signalError struct{ signal string }

func (s signalError) Error() string { return "killed by " + s.signal }

type exitError struct{ status int }

func (f exitError) Error() string { return fmt.Sprintf("exit status %d", f.status) }

// wasKilled reports whether a signal killed a program or, by its exit status, a command
// of its shell.
func wasKilled(err error) bool {
	var (
		s signalError
		f exitError
	)
	return errors.As(err, &s) || errors.As(err, &f) && f.status > 128
}

func (r *relay) command(kind string) string {
	var names []string
	switch kind {
	case Editor, File:
		names = []string{r.env("VISUAL"), r.env("EDITOR"), defaultEditor}
	case Pager:
		names = []string{r.env("PAGER")}
		if _, err := exec.LookPath("less"); err == nil {
			names = append(names, "less")
		}
		names = append(names, "more")
	}
	blank := func(name string) bool { return strings.TrimSpace(name) == "" }
	return cmp.Or(slices.DeleteFunc(names, blank)...)
}

// safeName returns a base name that is not an option, a hidden file or special to a
// shell. It keeps the suffix.
func safeName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 && i < len(name)-1 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name[max(0, len(name)-100):], ".-")
	if strings.Trim(name, "_.") == "" {
		return "content"
	}
	return name
}

func save(path string, content []byte) (where string, err error) {
	if path == "" {
		return "", errors.New("no file name")
	}
	if rest, is := strings.CutPrefix(path, "~"); is && (rest == "" || os.IsPathSeparator(rest[0])) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = home + rest
	}
	if where, err = filepath.Abs(path); err != nil {
		return "", err
	}
	f, err := os.OpenFile(where, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s already exists", where)
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(where)
		return "", err
	}
	return where, nil
}

// endWith stops a program when ctx is done: hangUp first, then kill after grace. The
// caller must call done once the program has exited.
func endWith(ctx context.Context, hangUp, kill func()) (done func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		hangUp()
		select {
		case <-over:
		case <-time.After(grace):
			kill()
		}
	}()
	return func() { close(over); <-gone }
}
