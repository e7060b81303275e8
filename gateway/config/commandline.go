package config

import (
	"slices"
	"strings"

	"goblin/registry/termtext"
)

// windowsProgram matches a Windows program at the start of a command line. Such a path
// may contain spaces, and its backslashes escape nothing.
var windowsProgram = pattern(`(?i)^(?:[a-z]:[\\/]|\\\\)[^"]*?\.(?:exe|cmd|bat|com|ps1)(?:\s|$)`)

var windowsPath = pattern(`^(?:[A-Za-z]:[\\/]|\\\\)`)

var assignment = pattern(`^([A-Za-z_][A-Za-z0-9_]*)=`)

type commandLine struct {
	env   [][2]string
	words []string // may be empty
}

// parseCommandLine splits a line by the quoting rules of a POSIX shell. problem is the
// reason if that is impossible.
func parseCommandLine(line string) (parsed commandLine, problem string) {
	line = strings.TrimSpace(line)
	if windowsPath().MatchString(line) {
		at := len(line)
		if m := windowsProgram().FindString(line); m != "" {
			at = len(strings.TrimSpace(m))
		}
		words, problem := splitWords(line[at:])
		return commandLine{words: append([]string{line[:at]}, words...)}, problem
	}
	words, problem := splitWords(line)
	if problem != "" {
		return commandLine{}, problem
	}
	for len(words) > 0 && assignment().MatchString(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		parsed.env = append(parsed.env, [2]string{name, value})
		words = words[1:]
	}
	parsed.words = words
	return parsed, ""
}

// operators are words that only a shell understands.
var operators = []string{"|", "||", "&", "&&", ";", "<", "<<", ">", ">>", "2>", "2>&1", "&>"}

const needsShell = `has a command line that needs a shell; write command: sh and args: ["-c", "…"]`

// splitWords keeps a variable in braces whole.
func splitWords(line string) (words []string, problem string) {
	var word strings.Builder
	inWord, quoted := false, false
	end := func() bool {
		if inWord && !quoted && slices.Contains(operators, word.String()) {
			return false
		}
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord, quoted = false, false
		return true
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if !end() {
				return nil, needsShell
			}
			continue
		case c == '\'':
			stop := strings.IndexByte(line[i+1:], '\'')
			if stop < 0 {
				return nil, openQuote
			}
			word.WriteString(line[i+1 : i+1+stop])
			i, quoted = i+1+stop, true
		case c == '"':
			stop := doubleQuoted(line[i+1:], &word)
			if stop < 0 {
				return nil, openQuote
			}
			i, quoted = i+1+stop, true
		case c == '\\' && i+1 < len(line):
			i++
			if line[i] == '\n' {
				continue
			}
			word.WriteByte(line[i])
			quoted = true
		case c == '`', strings.HasPrefix(line[i:], "$("):
			return nil, needsShell
		default:
			stop := variableEnd(line[i:])
			word.WriteString(line[i : i+stop])
			i += stop - 1
		}
		inWord = true
	}
	if !end() {
		return nil, needsShell
	}
	return words, ""
}

const openQuote = `has a command line with an unclosed quote`

// doubleQuoted writes the text up to the closing quote and returns its index, or -1.
func doubleQuoted(text string, word *strings.Builder) int {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0:
			if i++; text[i] != '\n' {
				word.WriteByte(text[i])
			}
		default:
			stop := variableEnd(text[i:])
			word.WriteString(text[i : i+stop])
			i += stop - 1
		}
	}
	return -1
}

// variableEnd returns the length of the braced variable at the start of text, or 1.
func variableEnd(text string) int {
	if strings.HasPrefix(text, "${") {
		if end := termtext.ClosingBrace(text); end > 0 {
			return end + 1
		}
	}
	if strings.HasPrefix(text, "{env:") || strings.HasPrefix(text, "{file:") { // opencode
		if end := strings.IndexByte(text, '}'); end > 0 {
			return end + 1
		}
	}
	return 1
}
