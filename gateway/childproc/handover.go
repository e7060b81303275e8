//go:build linux || darwin

package childproc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// SurvivesExit reports whether children outlive this process.
func (r *Registry) SurvivesExit() bool { return r != nil && r.OutliveExit }

// HandOver starts cmd, which stops the children that are left after this process exits.
// cmd must call [Reap] for the same folder with its standard input. The children must
// outlive this process, and their input must end with it. HandOver returns ErrNoRecord if
// not all children are recorded.
func (r *Registry) HandOver(cmd *exec.Cmd) error {
	if r.isIncomplete() {
		return ErrNoRecord
	}
	in, owner, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("hand over child processes: %w", err)
	}
	defer in.Close()
	cmd.Stdin, cmd.Dir, cmd.SysProcAttr = in, "/", &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = owner.Close()
		return fmt.Errorf("hand over child processes: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownerLock = owner // closed when this process exits
	if r.file != nil {
		_ = os.Rename(r.file.Name(), r.file.Name()+handedOver) // otherwise Sweep reports a killed process
	}
	return nil
}

func (r *Registry) isIncomplete() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Reap waits until owner ends with its process, gives the children time to exit, and
// sweeps dir.
func Reap(dir string, owner io.Reader) {
	_, _ = io.Copy(io.Discard, owner)
	time.Sleep(grace)
	New(dir, slog.New(slog.DiscardHandler)).Sweep(context.Background())
}
