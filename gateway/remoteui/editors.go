package remoteui

import (
	"path/filepath"
	"strconv"
	"strings"
)

// splitLine splits name at its last colon into a path and a line, or "" without a line.
func splitLine(name string) (path, line string) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return name, ""
	}
	if n, err := strconv.Atoi(name[i+1:]); err != nil || n < 1 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// Program names of editors, by the arguments that open a file at a line.
var (
	plusEditors  = words("vi vim nvim view vim.basic vim.tiny nvi elvis vile gvim ex nano pico micro emacs emacsclient mg jed joe jmacs jpico jstar ne kak gedit gnome-text-editor pluma xed mousepad neovide")
	gotoEditors  = words("code code-insiders codium vscodium code-oss cursor windsurf trae kiro antigravity positron")
	colonEditors = words("hx helix subl sublime_text zed zeditor zed-editor lapce amp")
	flagEditors  = words("kate kwrite idea goland pycharm webstorm clion phpstorm rubymine rider mate fleet")
)

func words(s string) map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq(s) {
		all[name] = true
	}
	return all
}

// editorAtLine returns the command and the file argument. An unknown editor opens the
// file without the line.
func editorAtLine(command, file, line string) (string, string) {
	if line == "" {
		return command, file
	}
	switch name := program(command); {
	case plusEditors[name]:
		return command + " +" + line, file
	case gotoEditors[name]:
		return command + " -g", file + ":" + line
	case colonEditors[name]:
		return command, file + ":" + line
	case flagEditors[name]:
		return command + " --line " + line, file
	}
	return command, file
}

func program(command string) string {
	for word := range strings.FieldsSeq(command) {
		word = strings.Trim(word, `"'`)
		if word == "env" || word == "exec" || word == "command" || strings.Contains(word, "=") {
			continue
		}
		name := filepath.Base(strings.ReplaceAll(word, `\`, "/"))
		return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd"))
	}
	return ""
}
