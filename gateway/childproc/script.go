package childproc

import (
	"fmt"
	"path/filepath"
	"strings"
)

// IsScript reports whether Windows starts a program by its shell: npx and its like are
// such files there, npx.cmd.
func IsScript(program string) bool {
	switch strings.ToLower(filepath.Ext(program)) {
	case ".cmd", ".bat":
		return true
	}
	return false
}

// plainInScripts are the characters besides letters and digits that the shell of Windows
// leaves alone outside of quotes.
const plainInScripts = `#$*+-./:?@\_`

// ScriptLine is the command line by which Windows' cmd.exe starts a script with arguments,
// so that the script gets each as it is and none runs anything. The shell reads a line by
// other rules than programs do, in which quotes do not hide all: what stands between
// percent signs would be replaced by a variable. Line breaks, which no quotes hide, are
// an error.
func ScriptLine(script string, args []string) (string, error) {
	if strings.ContainsAny(script, "\"%\r\n\x00") || strings.HasSuffix(script, `\`) {
		return "", fmt.Errorf("the path %q cannot be given to cmd.exe", script)
	}
	var line strings.Builder
	// /d: nothing of the registry runs first; /v:off: ! is a character like others.
	line.WriteString(`cmd.exe /e:on /v:off /d /c ""` + script + `"`)
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("argument %d has a line break or a NUL, which a .cmd or .bat file cannot be given", i+1)
		}
		line.WriteByte(' ')
		quote(&line, arg)
	}
	line.WriteByte('"') // of the whole, which /c takes off
	return line.String(), nil
}

func quote(line *strings.Builder, arg string) {
	quoted := arg == "" || strings.ContainsFunc(arg, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune(plainInScripts, c)
	}) || strings.HasSuffix(arg, `\`)
	if !quoted {
		line.WriteString(arg)
		return
	}
	line.WriteByte('"')
	slashes := 0
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '\\':
			slashes++
			line.WriteByte(c)
			continue
		case '"': // two of them are one, and leave the shell within quotes
			line.WriteString(strings.Repeat(`\`, slashes) + `""`)
		case '%': // and no characters of %CD%, so that the sign begins no variable's name
			line.WriteString(`%%cd:~,%`)
		default:
			line.WriteByte(c)
		}
		slashes = 0
	}
	line.WriteString(strings.Repeat(`\`, slashes) + `"`)
}
