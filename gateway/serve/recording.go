package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"goblin/gateway/archive"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/remoteui"
	"goblin/registry/termtext"
)

// progressInterval is the time between two reports of a slow load.
const progressInterval = 200 * time.Millisecond

// Recording is a loaded recording with the user's settings of the UI.
type Recording struct {
	*archive.Archive
	Theme, Images string
	Keys          map[string][]string
	Command       []string // for clients, shown to users
	Saved         string   // folder of saved calls, or ""
}

// OpenRecording shows a recording on the terminal. Nothing is started and nothing is
// sent. show receives the loaded recording.
func (p *Process) OpenRecording(ctx context.Context, path string, o archive.Options, show func(context.Context, *Recording, *remoteui.Conn) error) error {
	if !p.App.InTTY || !p.App.OutTTY {
		return errors.New("open a recording: stdin and stdout must be a terminal; \"goblin traffic --from\" prints it")
	}
	done := func() {}
	if p.App.ErrTTY {
		o.Progress, done = p.progress()
	}
	a, err := archive.Load(ctx, path, o)
	done()
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, archive.ErrFilter):
		return cli.Fail(cli.CodeUsage, "%w", err)
	case err != nil:
		return fmt.Errorf("open the recording: %w", err)
	}
	r := &Recording{Archive: a, Command: p.App.ClientCommand(&config.Config{Demo: true}, "")}
	s := &setup{cfg: &config.Config{}}
	if cfg, err := p.App.Load(); err == nil { // an invalid config has no effect
		s.cfg = cfg
	}
	r.Saved = p.App.SavedDir(s.cfg)
	r.Registry.SetStyleColors(s.cfg.TUI.Colors)
	r.Theme, r.Images, r.Keys = s.cfg.TUI.Theme, s.cfg.TUI.Images, s.cfg.TUI.Keys
	t := p.terminal(p.In, p.Out, cmp.Or(p.Theme, s.cfg.TUI.Theme))
	showing, release := p.holdTerminal(ctx, t)
	defer release()
	log := slog.New(slog.DiscardHandler) // the terminal belongs to the UI
	err = showHere(showing, log, t, func(ctx context.Context, c *remoteui.Conn) error { return show(ctx, r, c) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// progress returns a function that reports progress in one line, and a function that
// removes the line.
func (p *Process) progress() (report func(read, total int64), done func()) {
	began := time.Now()
	last, shown := began, false
	report = func(read, total int64) {
		if now := time.Now(); now.Sub(last) >= progressInterval {
			last, shown = now, true
			fmt.Fprintf(p.App.Err, "\r\x1b[Kreading %s of %s", termtext.Size(read), termtext.Size(total))
		}
	}
	return report, func() {
		if shown {
			fmt.Fprint(p.App.Err, "\r\x1b[K")
		}
	}
}
