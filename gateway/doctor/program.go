package doctor

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/state"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/stderr"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

// checkProgram checks a server that is a program.
func (p *serverCheck) checkProgram(ctx context.Context) {
	p.warnUnexpanded()
	path, ok := p.command()
	if !ok || !p.folder() {
		return
	}
	t := p.connect(ctx, p.s)
	if p.checkStarted(t, path) && p.checkOutput(t) && p.checkHandshake(t) {
		p.checkLists(t)
	}
}

// command finds the program.
func (p *serverCheck) command() (path string, ok bool) {
	const name = "command"
	env := p.s.Environ(os.LookupEnv, os.Environ())
	path, err := childproc.LookPath(p.s.Command, env)
	switch {
	case err == nil:
		if where, fix := p.shellOnly(path, env); where != "" {
			p.AddWarning(name, fmt.Sprintf("%s is %s; clients that are started from the desktop do not have %s in their PATH", p.s.Command, path, where), fix)
			return path, true
		}
		text := path
		if path != p.s.Command {
			text = p.s.Command + " is " + path
		}
		p.AddOK(name, text)
		return path, true
	case filepath.Base(p.s.Command) != p.s.Command:
		p.reportNotRunnable(name)
		return "", false
	}
	list := pathOf(env)
	text := fmt.Sprintf("%q is in no folder of PATH (%s)", p.s.Command, short(list, 200))
	if list == "" {
		text = fmt.Sprintf("%q is not found: PATH is empty", p.s.Command)
	}
	switch first, rest, spaced := strings.Cut(p.s.Command, " "); {
	case spaced && isFound(first, env):
		p.AddBroken(name, fmt.Sprintf("there is no program %q: a command has no arguments", p.s.Command),
			fmt.Sprintf("write command: %s and args: [%s]", first, strings.Join(strings.Fields(rest), ", ")))
	default:
		p.AddBroken(name, text, p.commandFix(list))
	}
	return "", false
}

// reportNotRunnable reports why a program that is named by its path cannot be run.
func (p *serverCheck) reportNotRunnable(name string) {
	st, err := os.Stat(p.s.Command)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.AddBroken(name, "there is no file "+p.s.Command, "correct the path in command, or install the program there")
	case err != nil:
		p.AddBroken(name, fmt.Sprintf("%s cannot be read: %v", p.s.Command, childproc.StripProgram(err)), "correct the path in command, or the rights of its folders")
	case st.IsDir():
		p.AddBroken(name, p.s.Command+" is a folder", "name the program in it as command")
	default:
		p.AddBroken(name, p.s.Command+" is not executable", "run: "+termtext.Command("chmod +x", []string{p.s.Command}))
	}
}

func isFound(command string, env []string) bool {
	_, err := childproc.LookPath(command, env)
	return err == nil
}

func pathOf(env []string) string {
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			return list
		}
	}
	return ""
}

// installHints has, by command, how to install the program.
var installHints = map[string]string{
	"npx": "Node.js", "npm": "Node.js", "node": "Node.js", "uvx": "uv", "uv": "uv", "bunx": "Bun", "bun": "Bun",
	"deno": "Deno", "docker": "Docker", "podman": "Podman", "dnx": "the .NET SDK, version 10 or later", "dotnet": "the .NET SDK",
	"python": "Python", "python3": "Python", "pipx": "pipx", "java": "a Java runtime",
}

// commandFix returns how a command can be found that is not in PATH.
func (p *serverCheck) commandFix(list string) string {
	home, _ := os.UserHomeDir()
	for _, pattern := range programFolders(home) {
		folders, _ := filepath.Glob(pattern) // the patterns are right
		for _, folder := range slices.Backward(folders) {
			if slices.Contains(filepath.SplitList(list), folder) {
				continue
			}
			if _, err := exec.LookPath(filepath.Join(folder, p.s.Command)); err == nil {
				return p.pathFix(folder)
			}
		}
	}
	if maker := installHints[p.s.Command]; maker != "" {
		return "install " + maker
	}
	return "install it, or give its full path as command"
}

// pathFix suggests an entry that puts a folder into PATH. The full path as command would
// not do: npx and others look for their interpreters in PATH, too.
func (p *serverCheck) pathFix(folder string) string {
	return stderr.EnvFix(p.s, stderr.EnvEntry(p.s, "PATH", folder+string(filepath.ListSeparator)+"${PATH}"))
}

// programFolders returns folders, as patterns, with programs that desktops do not find.
func programFolders(home string) []string {
	places := []string{"/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/opt/local/bin", "/snap/bin"}
	if home == "" {
		return places
	}
	for _, p := range []string{
		".local/bin", ".cargo/bin", ".bun/bin", ".deno/bin", ".volta/bin", ".asdf/shims", ".local/share/mise/shims",
		".nvm/versions/node/*/bin", ".local/share/fnm/aliases/default/bin", ".pyenv/shims", ".dotnet/tools", "go/bin", ".rd/bin", ".docker/bin",
	} {
		places = append(places, filepath.Join(home, p))
	}
	return places
}

// desktopPath is the PATH of programs that a desktop starts, before anybody changed it:
// systemd's DefaultPath=, and that of macOS' launchd. On Windows the shell has no other.
func desktopPath() []string {
	switch runtime.GOOS {
	case "windows":
		return nil
	case "darwin":
		return []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games", "/usr/local/games", "/snap/bin"}
}

// shellOnly names the folder of a command that a desktop's programs would not find.
func (p *serverCheck) shellOnly(path string, env []string) (folder, fix string) {
	desktop := desktopPath()
	_, own := p.s.Env["PATH"]
	_, filed := p.s.FileEnv["PATH"]
	if own || filed || desktop == nil || filepath.Base(p.s.Command) != p.s.Command {
		return "", ""
	}
	if isFound(p.s.Command, []string{"PATH=" + strings.Join(desktop, string(filepath.ListSeparator))}) {
		return "", ""
	}
	folder = filepath.Dir(path)
	return folder, p.pathFix(folder)
}

func (p *serverCheck) folder() bool {
	if p.s.Cwd == "" {
		return true
	}
	st, err := os.Stat(p.s.Cwd)
	if err != nil || !st.IsDir() {
		p.AddBroken("cwd", fmt.Sprintf("the folder to run in, %s, is not there", p.s.Cwd), "make it, or correct cwd")
		return false
	}
	return true
}

// checkStarted checks whether the program started and kept running.
func (p *serverCheck) checkStarted(t *session, path string) bool {
	const name = "runs"
	why := t.connectError()
	var file *fs.PathError
	var exit *exec.ExitError
	switch {
	case why == nil, t.opened:
		p.AddOK(name, "it starts")
		return true
	case errors.Is(why.Err, syscall.ENOEXEC):
		p.AddBroken(name, path+" is no program for this machine", "install the build for "+runtime.GOOS+" on "+runtime.GOARCH+"; a script needs a first line such as #!/bin/sh")
	case errors.As(why.Err, &file) && errors.Is(file, fs.ErrNotExist):
		text, fix := "the program does not start: what it needs is missing", "reinstall it"
		if needs := interpreter(path); needs != "" {
			text, fix = fmt.Sprintf("the program does not start: its first line names %s, which is missing", needs), "install that, or correct the first line of "+path
		}
		p.AddBroken(name, text, fix)
	case errors.As(why.Err, &file):
		p.AddBroken(name, why.Reason, "see that you may run it: "+termtext.Command("ls -l", []string{path}))
	case errors.As(why.Err, &exit), errors.Is(why.Err, io.EOF):
		p.fail(name, why, cmp.Or(p.missingPathFix(why.Lines), p.runByHandFix()))
	default:
		p.AddOK(name, "it starts")
		return true
	}
	return false
}

// missingPathFix returns the fix for an argument that is the path of no file, if the server's output names
// it.
func (p *serverCheck) missingPathFix(lines []string) string {
	for _, arg := range p.s.Args {
		path := arg
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			path = value
		}
		named := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, path) })
		if _, err := os.Stat(path); named && filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist) {
			return "correct " + path + " in args, which does not exist; if a folder is missing, run: mkdir -p " + termtext.Portable(termtext.QuoteWord(path))
		}
	}
	return ""
}

// interpreter returns the program that the first line of a script names.
func interpreter(path string) string {
	f, _, err := state.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		return strings.TrimSpace(rest)
	}
	return ""
}

// checkOutput checks whether the program wrote only messages to its stdout. Goblin skips other lines, but
// many clients do not.
func (p *serverCheck) checkOutput(t *session) bool {
	const name = "stdout"
	if t.skippedLines == 0 {
		p.AddOK(name, "nothing but messages")
		return true
	}
	text := fmt.Sprintf("its first line is no JSON-RPC message: %q", short(t.banner, 200))
	if t.opened {
		text = fmt.Sprintf("it writes what is no JSON-RPC message: %q", short(t.banner, 200))
	}
	c := report.Check{Name: name, State: report.Warning, Text: text, Fix: "have it write that to stderr; Goblin skips such lines, but many clients fail"}
	if !t.opened {
		c.State, c.Fix = report.Broken, "have it speak MCP over stdio: a flag may be missing in args, or it prints to stdout what belongs to stderr"
	}
	return p.Add(c)
}

// checkHandshake checks the handshake.
func (p *serverCheck) checkHandshake(t *session) bool {
	const name = "handshake"
	why := t.connectError()
	switch {
	case t.opened:
		text := "revision " + t.info.Protocol
		if t.info.SecondEra || t.info.Era == upstream.Modern {
			text += ", " + t.info.Era.String()
		}
		p.AddOK(name, text)
		return true
	case why == nil:
		p.AddBroken(name, "it was interrupted", "try again")
	case errors.Is(why, context.DeadlineExceeded) && p.s.Type == config.Stdio:
		fix := "see what it waits for: %s; if it only is slow, as when it is downloaded first, raise its startup_timeout"
		if at := listening(why.Lines); at != "" {
			fix = "it waits for HTTP at " + at + "; give it the flag for stdio in args. Its command in a shell: %s"
		}
		p.fail(name, why, fmt.Sprintf(fix, p.line()))
	case errors.Is(why, context.DeadlineExceeded):
		p.fail(name, why, "check that url is the address of an MCP server; if it is only slow, raise its startup_timeout")
	case strings.HasPrefix(why.Reason, "refused"):
		p.fail(name, why, "do what its message asks for; if it asks for nothing, check args and url, and update the server")
	case strings.HasPrefix(why.Reason, "speaks protocol"):
		p.fail(name, why, "update the server or Goblin, whichever is older")
	case p.s.Type == config.Stdio:
		p.fail(name, why, "see that args make it an MCP server, and that it is up to date")
	default:
		p.fail(name, why, "check that url is the address of an MCP server")
	}
	return false
}

// fail adds the check that why broke. fix is for errors that bring none of their own.
func (p *serverCheck) fail(name string, why *upstream.Error, fix string) {
	p.Add(report.Check{Name: name, State: report.Broken, Text: why.Reason, Fix: cmp.Or(why.Fix, fix), Lines: why.Lines})
}

var address = pattern(`(?i)(?:listening|running|serving|started|available|ready)\b.*?(https?://[^\s'")]+|\bport:? \d+)`)

// listening returns where a server waits for HTTP by its own words, "" if it has no such.
func listening(lines []string) string {
	for _, line := range lines {
		if m := address().FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// short cuts a text, between characters.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
