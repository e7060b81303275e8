package serve

import (
	"cmp"
	"io"
	"log/slog"
	"os"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

// setup is made first by each mode that serves.
type setup struct {
	cfg      *config.Config
	endpoint daemon.Endpoint // of the daemon; may be missing for one that is alone
	pins     string          // file of the approved tools
	noPins   error           // why there is none although the config wants one
	logger   *slog.Logger
	log      string   // its file; "" for stderr
	tty      *os.File // the terminal of its screen; nil for one of the streams, if any is one
	closes   []io.Closer
}

// kinds of setup, by where the log goes that has no file in the config.
const (
	noSocket = iota // to stderr, and there is no socket
	logToStderr
	logToFile // the file beside the socket
)

// prepare loads the config, finds the place of its daemon and opens the log.
// close must be called at the end.
func (p *Process) prepare(load func() (*config.Config, error), kind int) (*setup, error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	s := &setup{cfg: cfg, log: cfg.Log.File}
	s.pins, s.noPins = p.App.PinsPath(cfg)
	if s.noPins != nil && cfg.Gateway.Pin == config.PinStrict {
		return nil, s.noPins // here, where a client sees why
	}
	if s.endpoint, err = p.App.FindDaemon(cfg.Path); err != nil && kind != noSocket {
		return nil, err
	}
	w := p.App.Err
	if kind == logToFile {
		file, err := daemon.OpenLog(s.endpoint)
		if err != nil {
			return nil, err
		}
		w, s.closes = file, append(s.closes, file)
		s.log = cmp.Or(s.log, s.endpoint.Log)
	}
	logger, log, err := p.App.Logger(cfg, w)
	if err != nil {
		s.close()
		return nil, err
	}
	s.logger, s.closes = logger, append(s.closes, log)
	return s, nil
}

// close closes the log.
func (s *setup) close() {
	for _, c := range s.closes {
		_ = c.Close() // there is no other place to tell it
	}
}
