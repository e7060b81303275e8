package cli

import (
	"io"
	"log/slog"

	"goblin/gateway/config"
	"goblin/gateway/logs"
	"goblin/registry/termtext"
)

// maxLog is the maximum size of log.file in bytes. A full file becomes <file>.1.
const maxLog = 32 << 20

// Logger returns the logger of a serving mode. It writes to log.file, or to fallback if
// the config has none. The caller must close closer.
func (a *App) Logger(cfg *config.Config, fallback io.Writer) (logger *slog.Logger, closer io.Closer, err error) {
	w, closer := fallback, io.Closer(io.NopCloser(nil))
	if cfg.Log.File != "" {
		f, err := logs.Open(cfg.Log.File, maxLog)
		if err != nil {
			return nil, nil, Fail(CodeConfig, "write log.file: %w", err)
		}
		w, closer = f, f
	}
	return newLogger(w, cfg.Log.Level, a.mask), closer, nil
}

// newLogger returns a text logger that masks secrets and escapes control characters.
func newLogger(w io.Writer, level slog.Level, mask *config.Mask) *slog.Logger {
	return slog.New(slog.NewTextHandler(escapingWriter{mask.Writer(w)}, &slog.HandlerOptions{Level: level}))
}

// escapingWriter requires whole lines in each Write.
type escapingWriter struct{ to io.Writer }

func (v escapingWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(v.to, termtext.Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
