package daemon

import (
	"errors"
	"fmt"
	"io"

	"goblin/gateway/logs"
)

const maxLog = 4 << 20

// OpenLog opens the log of an endpoint for a detached daemon's logger and standard error.
// It limits p.Log to 4 MiB, with the same again in <log>.1.
func OpenLog(p Endpoint) (*logs.File, error) {
	f, err := logs.Open(p.Log, maxLog)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	return f, nil
}

func openLog(p Endpoint) (f *logs.File, end int64, err error) {
	if f, err = OpenLog(p); err != nil {
		return nil, 0, err
	}
	if end, err = f.File().Seek(0, io.SeekEnd); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the daemon's log: %w", err), f.Close())
	}
	return f, end, nil
}
