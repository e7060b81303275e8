package cli

import (
	"io"
	"log/slog"

	"goblin/gateway/config"
	"goblin/gateway/logs"
	"goblin/registry/termtext"
)

// maxLog is how many bytes log.file holds before they are moved to <file>.1.
const maxLog = 32 << 20

// Logger makes the logger of a mode that serves: log.file, or fallback if the
// config names none. close must be called at the end.
func (a *App) Logger(cfg *config.Config, fallback io.Writer) (logger *slog.Logger, closer io.Closer, err error) {
	w, closer := fallback, io.Closer(io.NopCloser(nil))
	if cfg.Log.File != "" {
		f, err := logs.Open(cfg.Log.File, maxLog)
		if err != nil {
			return nil, nil, Fail(CodeConfig, "cannot write log.file: %w", err)
		}
		w, closer = f, f
	}
	return NewLogger(w, cfg.Log.Level, a.mask), closer, nil
}

// NewLogger makes a logger of text lines without secrets, and without anything
// that a terminal would obey or hide.
func NewLogger(w io.Writer, level slog.Level, mask *config.Mask) *slog.Logger {
	return slog.New(slog.NewTextHandler(escapingWriter{mask.Writer(w)}, &slog.HandlerOptions{Level: level}))
}

// escapingWriter is a writer of whole lines. The log quotes what does not print; of what
// prints, some is not seen.
type escapingWriter struct{ to io.Writer }

func (v escapingWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(v.to, termtext.Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
