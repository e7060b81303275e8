package serve

import (
	"cmp"
	"io"
	"log/slog"
	"os"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

type setup struct {
	cfg      *config.Config
	endpoint daemon.Endpoint // of the daemon; may be zero for a standalone gateway
	pins     string          // path of the approved tools
	noPins   error           // why pins is "" although the config requires it
	logger   *slog.Logger
	log      string   // path of the log; "" means stderr
	tty      *os.File // the UI's terminal, or nil for the streams
	closes   []io.Closer
}

// The kinds of setup select the log's place if the config sets none.
const (
	noSocket = iota // stderr, without a socket
	logToStderr
	logToFile // the file next to the socket
)

// prepare loads the config, locates its daemon and opens the log. The caller must call
// close.
func (p *Process) prepare(load func() (*config.Config, error), kind int) (*setup, error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	s := &setup{cfg: cfg, log: cfg.Log.File}
	s.pins, s.noPins = p.App.PinsPath(cfg)
	if s.noPins != nil && cfg.Gateway.Pin == config.PinStrict {
		return nil, s.noPins // the client sees this error
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

func (s *setup) close() {
	for _, c := range s.closes {
		_ = c.Close() // there is no place to report it
	}
}
