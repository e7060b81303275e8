package childproc

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Group is a child with all that it started: a job object, which ends with the
// last handle to it. That is ours, so nothing of it outlives this process,
// however that ends.
type Group struct {
	mu  sync.Mutex
	job windows.Handle // 0 once it is closed
}

// StartGroup starts the child in a job of its own. The child is suspended until
// it belongs to the job, so that nothing that it starts can be outside.
func StartGroup(cmd *exec.Cmd, _ bool) (*Group, error) {
	// A console of its own, which is not shown, keeps our Ctrl-C from it.
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW}
	if IsScript(cmd.Path) {
		if err := useShell(cmd); err != nil {
			return nil, err
		}
	}
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		g.Kill()
		return nil, err
	}
	if err := errors.Join(g.assign(cmd), resume(uint32(cmd.Process.Pid))); err != nil {
		_ = cmd.Process.Kill()
		g.Kill()
		return nil, errors.Join(err, cmd.Wait())
	}
	return g, nil
}

// useShell makes the system's shell start a script.
func useShell(cmd *exec.Cmd) error {
	line, err := ScriptLine(cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return fmt.Errorf("find cmd.exe: %w", err)
	}
	cmd.Path, cmd.SysProcAttr.CmdLine = filepath.Join(system, "cmd.exe"), line
	return nil
}

func newGroup() (*Group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up a job object: %w", err), windows.CloseHandle(job))
	}
	return &Group{job: job}, nil
}

// assign puts the child into the job.
func (g *Group) assign(cmd *exec.Cmd) error {
	var err error
	none := cmd.Process.WithHandle(func(child uintptr) {
		err = windows.AssignProcessToJobObject(g.job, windows.Handle(child))
	})
	if err := errors.Join(none, err); err != nil {
		return fmt.Errorf("put the process into a job object: %w", err)
	}
	return nil
}

// resume lets a process run that was started suspended: it has one thread.
func resume(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer func() { _ = windows.CloseHandle(all) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("open the thread of the process: %w", err)
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(err, windows.CloseHandle(thread))
	}
	return fmt.Errorf("find the thread of the process: %w", err)
}

// Reap waits for the end of the child and ends what is left of its job.
func (g *Group) Reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	g.Kill()
	return err
}

// Terminate does nothing: there is no signal to ask a process to end.
func (g *Group) Terminate() {}

// Kill ends all processes of the job.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}
