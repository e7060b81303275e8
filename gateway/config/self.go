package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// isSelf reports whether a server is Goblin, as in many files of clients. Starting it
// would start further Goblins without end.
func isSelf(s *Server) bool { return s.Type == Stdio && IsSelf(s.Command, s.Args) }

// IsSelf reports whether a command line runs Goblin in a mode that serves its config.
func IsSelf(command string, args []string) bool {
	return command != "" && servesConfig(args) && isOwnProgram(command)
}

// servesConfig reports whether Goblin serves with these arguments: without a command, or
// with one that does.
func servesConfig(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains([]string{"--config", "--theme", "--tui-tty"}, args[i]):
			i++ // its value
		case !strings.HasPrefix(args[i], "-"):
			return slices.Contains([]string{"stdio", "serve", "daemon", "host"}, args[i])
		}
	}
	return true
}

func isOwnProgram(command string) bool {
	if base := filepath.Base(command); base == "goblin" || strings.EqualFold(base, "goblin.exe") {
		return true
	}
	own, err := os.Executable()
	if err != nil {
		return false
	}
	found, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	mine, err := os.Stat(own)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(found)
	return err == nil && os.SameFile(mine, theirs)
}

// programIsThere accepts commands with unexpanded variables.
func (r *reader) programIsThere(written string) bool {
	e := expansion{env: r.ask, refers: func(*expansion, string, int) (string, bool) { return "", false }}
	command := e.expand(written, 0)
	if e.wrong != "" || len(e.unset) > 0 {
		return false
	}
	if home := homeOf(r.env); home != "" && strings.HasPrefix(command, "~/") {
		command = filepath.Join(home, command[2:])
	}
	return ProgramExists(command, r.dir)
}

// ProgramExists reports whether a command is a program in PATH or a file, relative to
// dir.
func ProgramExists(command, dir string) bool {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		info, err := os.Stat(command)
		return err == nil && !info.IsDir()
	}
	_, err := exec.LookPath(command)
	return err == nil
}
