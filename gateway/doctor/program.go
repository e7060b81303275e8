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

func (p *serverCheck) checkProgram(ctx context.Context) {
	p.warnUnexpanded()
	path, ok := p.command()
	if !ok || !p.folder() {
		return
	}
	var t *session
	if p.Silent != nil {
		t = p.Silent.session(&p.Options, p.s)
	} else {
		t = p.connect(ctx, p.s)
	}
	if p.checkStarted(t, path) && p.checkOutput(t) && p.checkHandshake(t) {
		p.checkLists(t)
	}
}

func (p *serverCheck) command() (path string, ok bool) {
	const name = "command"
	env := p.s.Environ(os.LookupEnv, os.Environ())
	path, err := childproc.LookPath(p.s.Command, env)
	switch {
	case err == nil:
		if where, fix := p.shellOnly(path); where != "" {
			p.AddWarning(name, fmt.Sprintf("%s is %s; clients started from the desktop don't have %s in their PATH", p.s.Command, path, where), fix)
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
	text := fmt.Sprintf("%q not found in PATH (%s)", p.s.Command, short(list, 60))
	if list == "" {
		text = fmt.Sprintf("%q not found: PATH is empty", p.s.Command)
	}
	switch first, rest, spaced := strings.Cut(p.s.Command, " "); {
	case spaced && isFound(first, env):
		p.AddBroken(name, fmt.Sprintf("no program %q: command must not contain arguments", p.s.Command),
			fmt.Sprintf("write command: %s and args: [%s]", first, strings.Join(strings.Fields(rest), ", ")))
	default:
		p.AddBroken(name, text, p.commandFix(list))
	}
	return "", false
}

func (p *serverCheck) reportNotRunnable(name string) {
	st, err := os.Stat(p.s.Command)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.AddBroken(name, "no file "+p.s.Command, "fix the path in command, or install the program there")
	case err != nil:
		p.AddBroken(name, fmt.Sprintf("cannot read %s: %v", p.s.Command, childproc.StripProgram(err)), "fix the path in command, or the permissions of its folders")
	case st.IsDir():
		p.AddBroken(name, p.s.Command+" is a folder", "set command to the program in it")
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

// installHints maps commands to the software that provides them.
var installHints = map[string]string{
	"npx": "Node.js", "npm": "Node.js", "node": "Node.js", "uvx": "uv", "uv": "uv", "bunx": "Bun", "bun": "Bun",
	"deno": "Deno", "docker": "Docker", "podman": "Podman", "dnx": "the .NET SDK, version 10 or later", "dotnet": "the .NET SDK",
	"python": "Python", "python3": "Python", "pipx": "pipx", "java": "a Java runtime",
}

func (p *serverCheck) commandFix(list string) string {
	home, _ := os.UserHomeDir()
	for _, pattern := range programFolders(home) {
		folders, _ := filepath.Glob(pattern) // the patterns are valid
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
	return "install it, or set command to its full path"
}

// pathFix suggests PATH, since a full path in command is not enough: npx and others find
// their interpreters in PATH.
func (p *serverCheck) pathFix(folder string) string {
	return stderr.EnvFix(p.s, stderr.EnvEntry(p.s, "PATH", folder+string(filepath.ListSeparator)+"${PATH}"))
}

// programFolders returns patterns of program folders that are not in the desktop's PATH.
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

// desktopPath returns the default PATH of desktop programs: systemd's DefaultPath= and
// that of macOS' launchd. Windows has only one PATH.
func desktopPath() []string {
	switch runtime.GOOS {
	case "windows":
		return nil
	case "darwin":
		return []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games", "/usr/local/games", "/snap/bin"}
}

// shellOnly returns the folder of a command that desktop programs would not find.
func (p *serverCheck) shellOnly(path string) (folder, fix string) {
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
		p.AddBroken("cwd", fmt.Sprintf("no folder %s", p.s.Cwd), "create it, or fix cwd")
		return false
	}
	return true
}

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
		p.AddBroken(name, path+" is not a program for this machine", "install the build for "+runtime.GOOS+"/"+runtime.GOARCH+"; a script needs a first line like #!/bin/sh")
	case errors.As(why.Err, &file) && errors.Is(file, fs.ErrNotExist):
		text, fix := "the program doesn't start: a required file is missing", "reinstall it"
		if needs := interpreter(path); needs != "" {
			text, fix = fmt.Sprintf("the program doesn't start: its interpreter %s is missing", needs), "install the interpreter, or fix the first line of "+path
		}
		p.AddBroken(name, text, fix)
	case errors.As(why.Err, &file):
		p.AddBroken(name, why.Reason, "check that you may execute it: "+termtext.Command("ls -l", []string{path}))
	case errors.As(why.Err, &exit), errors.Is(why.Err, io.EOF):
		p.fail(name, why, cmp.Or(p.missingPathFix(why.Lines), p.runByHandFix()))
	default:
		p.AddOK(name, "it starts")
		return true
	}
	return false
}

// missingPathFix returns the fix for an argument that is a missing file, if the server's
// output mentions it.
func (p *serverCheck) missingPathFix(lines []string) string {
	for _, arg := range p.s.Args {
		path := arg
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			path = value
		}
		named := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, path) })
		if _, err := os.Stat(path); named && filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist) {
			return "fix " + path + " in args, which doesn't exist; if a folder is missing, run: mkdir -p " + termtext.Portable(termtext.QuoteWord(path))
		}
	}
	return ""
}

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

// checkOutput reports lines that are not messages. Goblin skips them, but many clients
// fail.
func (p *serverCheck) checkOutput(t *session) bool {
	const name = "stdout"
	if t.skippedLines == 0 {
		p.AddOK(name, "only messages")
		return true
	}
	text := fmt.Sprintf("the first line is not a JSON-RPC message: %q", short(t.banner, 200))
	if t.opened {
		text = fmt.Sprintf("a line is not a JSON-RPC message: %q", short(t.banner, 200))
	}
	c := report.Check{Name: name, State: report.Warning, Text: text, Fix: "make the server write it to stderr; Goblin skips such lines, but many clients fail"}
	if !t.opened {
		c.State, c.Fix = report.Broken, "make the server use stdio: check args for a missing flag, and that it logs to stderr instead of stdout"
	}
	return p.Add(c)
}

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
		p.AddBroken(name, "interrupted", "try again")
	case errors.Is(why, context.DeadlineExceeded) && p.s.Type == config.Stdio:
		fix := "check what it waits for: %s; if it is only slow, for example while it downloads, raise startup_timeout"
		if at := listening(why.Lines); at != "" {
			fix = "it serves HTTP at " + at + "; add its flag for stdio to args. To run it in a shell: %s"
		}
		p.fail(name, why, fmt.Sprintf(fix, p.line()))
	case errors.Is(why, context.DeadlineExceeded):
		p.fail(name, why, "check that url is the address of an MCP server; if it is only slow, raise startup_timeout")
	case strings.HasPrefix(why.Reason, "refused"):
		p.fail(name, why, "follow its message; if it gives no hint, check args and url, and update the server")
	case strings.HasPrefix(why.Reason, "speaks protocol"):
		p.fail(name, why, "update the server or Goblin, whichever is older")
	case p.s.Type == config.Stdio:
		p.fail(name, why, "check that args start an MCP server, and that it is up to date")
	default:
		p.fail(name, why, "check that url is the address of an MCP server")
	}
	return false
}

// fail uses fix if the error has none.
func (p *serverCheck) fail(name string, why *upstream.Error, fix string) {
	p.Add(report.Check{Name: name, State: report.Broken, Text: why.Reason, Fix: cmp.Or(why.Fix, fix), Lines: why.Lines})
}

var address = pattern(`(?i)(?:listening|running|serving|started|available|ready)\b.*?(https?://[^\s'")]+|\bport:? \d+)`)

func listening(lines []string) string {
	for _, line := range lines {
		if m := address().FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
