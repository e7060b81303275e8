package daemon

import (
	"errors"
	"fmt"
	"io"

	"goblin/gateway/logs"
)

// maxLog is how many bytes a log holds before it is moved to <log>.1.
const maxLog = 4 << 20

// OpenLog opens the log of a place. Give it to the logger of a detached daemon,
// whose standard error leads there, too: what is written through it keeps p.Log at
// 4 MiB, with as much again in <log>.1.
func OpenLog(p Endpoint) (*logs.File, error) {
	f, err := logs.Open(p.Log, maxLog)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	return f, nil
}

// openLog is OpenLog, and tells where the log ends.
func openLog(p Endpoint) (f *logs.File, end int64, err error) {
	if f, err = OpenLog(p); err != nil {
		return nil, 0, err
	}
	if end, err = f.File().Seek(0, io.SeekEnd); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the daemon's log: %w", err), f.Close())
	}
	return f, end, nil
}
