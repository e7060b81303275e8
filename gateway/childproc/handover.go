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

// HandOver has another process end the recorded children that are left when this one has
// ended, for programs whose users wait for their end. It is started by command, which
// has to call [Reap] for the same folder with its standard input; cmd is used up. The
// children must outlive this process, and what they read must end with it.
func (r *Registry) HandOver(cmd *exec.Cmd) error {
	if r.isIncomplete() {
		return ErrNoRecord
	}
	in, held, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("hand child processes over: %w", err)
	}
	defer in.Close()
	cmd.Stdin, cmd.Dir, cmd.SysProcAttr = in, "/", &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = held.Close()
		return fmt.Errorf("hand child processes over: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownerLock = held // the end of this process closes it
	if r.file != nil {
		_ = os.Rename(r.file.Name(), r.file.Name()+handedOver) // otherwise the next sweep reports a killed process
	}
	return nil
}

// isIncomplete reports whether the record may lack children.
func (r *Registry) isIncomplete() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Reap waits until owner ends, which the process does that handed its children over, lets
// these end by themselves for a while, and then sweeps dir.
func Reap(dir string, owner io.Reader) {
	_, _ = io.Copy(io.Discard, owner)
	time.Sleep(grace)
	New(dir, slog.New(slog.DiscardHandler)).Sweep(context.Background())
}
