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

// Group is a job object: a child and its descendants. The system kills the job when its
// last handle closes. Only this process has one, so the job never outlives it.
type Group struct {
	mu  sync.Mutex
	job windows.Handle // 0 after Kill
}

// StartGroup starts the child in its own job. It suspends the child until it belongs to
// the job, so that no descendant escapes.
func StartGroup(cmd *exec.Cmd, _ bool) (*Group, error) {
	// A hidden console of its own shields the child from Goblin's Ctrl-C.
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
		return nil, fmt.Errorf("create job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure job object: %w", err), windows.CloseHandle(job))
	}
	return &Group{job: job}, nil
}

func (g *Group) assign(cmd *exec.Cmd) error {
	var err error
	none := cmd.Process.WithHandle(func(child uintptr) {
		err = windows.AssignProcessToJobObject(g.job, windows.Handle(child))
	})
	if err := errors.Join(none, err); err != nil {
		return fmt.Errorf("assign process to job object: %w", err)
	}
	return nil
}

// resume resumes a process that was started suspended. It has one thread.
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

// ReapAfter waits for the child to exit, calls exited and kills the rest of its job.
func (g *Group) ReapAfter(cmd *exec.Cmd, exited func()) error {
	err := cmd.Wait()
	exited()
	g.Kill()
	return err
}

// Terminate does nothing: Windows has no signal for it.
func (g *Group) Terminate() {}

// Kill kills the job.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}
