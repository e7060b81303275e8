package childproc

import (
	"fmt"
	"path/filepath"
	"strings"
)

// IsScript reports whether Windows runs a program with cmd.exe, as it does for npx.cmd.
func IsScript(program string) bool {
	switch strings.ToLower(filepath.Ext(program)) {
	case ".cmd", ".bat":
		return true
	}
	return false
}

// plainInScripts lists the characters (not letters and digits) that cmd.exe leaves
// alone outside of quotes.
const plainInScripts = `#$*+-./:?@\_`

// ScriptLine returns the command line that makes cmd.exe run a script. The script gets
// the arguments unchanged, and none of them can run a command. cmd.exe parses lines by
// its own rules: quotes don't stop it from expanding %name%. Line breaks cannot be quoted
// and are an error.
func ScriptLine(script string, args []string) (string, error) {
	if strings.ContainsAny(script, "\"%\r\n\x00") || strings.HasSuffix(script, `\`) {
		return "", fmt.Errorf("cannot pass the path %q to cmd.exe", script)
	}
	var line strings.Builder
	// /d disables AutoRun commands from the registry; /v:off makes ! a plain character.
	line.WriteString(`cmd.exe /e:on /v:off /d /c ""` + script + `"`)
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("argument %d contains a line break or NUL, which cannot be passed to a .cmd or .bat file", i+1)
		}
		line.WriteByte(' ')
		quote(&line, arg)
	}
	line.WriteByte('"') // closes the quote that /c removes
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
		case '"': // doubled, it is one quote and keeps the quoting
			line.WriteString(strings.Repeat(`\`, slashes) + `""`)
		case '%': // an empty part of %CD% after each % prevents expansion
			line.WriteString(`%%cd:~,%`)
		default:
			line.WriteByte(c)
		}
		slashes = 0
	}
	line.WriteString(strings.Repeat(`\`, slashes) + `"`)
}
