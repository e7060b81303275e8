// Package stderr finds the lines of a server's stderr that explain its failure.
//
// It works on text and the config only. Functions are safe for concurrent use; a Tail is
// not.
package stderr

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// MaxLines is the maximum number of lines that Pick returns.
	MaxLines = 20
	// head and tail are the numbers of first and last lines in a Tail.
	head = MaxLines
	tail = 2 * MaxLines
	// joined is the number of lines in the summary if none names an error.
	joined = 3
)

// Tail stores the first and last lines of stderr. The zero Tail is ready to use.
type Tail struct {
	first []string
	last  []string
	next  int
}

// Add adds a line without its terminal escapes. After the first lines, it drops stack
// frames, which would displace the error above them.
func (t *Tail) Add(line string) {
	line = plain(line)
	switch {
	case len(t.first) < head:
		t.first = append(t.first, line)
	case isFrame(line):
	case len(t.last) < tail:
		t.last = append(t.last, line)
	default:
		t.last[t.next] = line
		t.next = (t.next + 1) % tail
	}
}

// Lines returns the stored lines in order.
func (t *Tail) Lines() []string { return slices.Concat(t.first, t.last[t.next:], t.last[:t.next]) }

// isFrame matches stack traces of Node.js, Python, Go, Java and Ruby.
func isFrame(line string) bool {
	text := strings.TrimLeft(line, " \t")
	if len(text) == len(line) {
		return strings.HasPrefix(line, "goroutine ")
	}
	for _, start := range []string{"at ", "File \"", "/", "^", "... ", "from "} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

var (
	escape = pattern(`\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?`)
	noise  = pattern(`^\s*(?:at |\.\.\. \d+ more|File ".*", line|[~^]+\s*$|goroutine \d|node:|Node\.js v|throw |Traceback \(|[\[\]{}(),;]*$|from \S+:\d+:in |thread '.*' (?:\(\d+\) )?panicked at \S+:$|#\d+ |Stack trace:$|note: run with |BEGIN failed--)` +
		`|^npm (?:notice|(?:ERR!|error)\s*(?:$|A complete log|\d+$|404 Note |errno|syscall))|^\[notice\]|During handling of the above exception`)
	mild   = pattern(`(?i)^[\W\d]*(?:\S+ - )?(?:npm )?(?:info|debug|trace|warn(?:ing)?|notice)\b|^\(node:\d+\)|\bDeprecationWarning\b|^\s*"\w+": `)
	strong = pattern(`(?i)cannot (?:find|load)|can't (?:find|open|locate)|could not find|not found|no such file|enoent|eacces|eperm\b|permission denied|access denied` +
		`|eaddrinuse|address already in use|econnrefused|enotfound|etimedout|eresolve|\b404\b|\brequired?s?\b|\brequired\b|\bmissing\b|not (?:be )?set\b|must be` +
		`|unbound variable|no module named|cannot connect to the docker daemon|no solution found|not in (?:this|the \S*) ?registry|no matching version` +
		`|could not determine executable|unsupported|not compatible|unknown (?:option|flag|command|argument)|unrecognized|\bKeyError\b` +
		`|unauthorized|forbidden|invalid|certificate|out of memory|no space left`)
	general = pattern(`(?i)error|fatal|panic|exception|fail(?:ed|ure)|usage:|abort`)
	code    = pattern(`(?i)^npm (?:ERR!|error) code `)
	because = pattern(`^Caused by: `)
	python  = pattern(`^\s*Traceback \(most recent call last\)`)
)

func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func plain(line string) string {
	if !strings.Contains(line, "\x1b") {
		return line
	}
	return escape().ReplaceAllString(line, "")
}

const (
	isNoise = iota
	isOther
	isGeneral
	isStrong
)

func weigh(line string) int {
	switch {
	case noise().MatchString(line):
		return isNoise
	case mild().MatchString(line):
		return isOther
	case code().MatchString(line):
		return isGeneral
	case strong().MatchString(line):
		return isStrong
	case general().MatchString(line):
		return isGeneral
	}
	return isOther
}

// caret matches the marker below a line of source code.
var caret = pattern(`^\s*[~^]+\s*$`)

// panicked matches the line above the message of a Rust panic.
var panicked = pattern(`^thread '.*' (?:\(\d+\) )?panicked at \S+:$`)

// weighAll weighs lines. A source line above a marker is noise, and a line below a Rust
// panic is its message.
func weighAll(lines []string) []int {
	weights := make([]int, len(lines))
	for i, line := range lines {
		weights[i] = weigh(line)
		if i > 0 && caret().MatchString(line) {
			weights[i-1] = isNoise
		}
		if i > 0 && panicked().MatchString(lines[i-1]) {
			weights[i] = max(weights[i], isGeneral)
		}
	}
	return weights
}

// Pick returns at most MaxLines lines: first lines that name an error, then the last
// others.
func Pick(lines []string) []string {
	var telling, others []string
	weights := weighAll(lines)
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) == "":
		case weights[i] >= isGeneral && len(telling) < MaxLines:
			telling = append(telling, line)
		default:
			others = append(others, line)
		}
	}
	return append(telling, others[max(0, len(others)-(MaxLines-len(telling))):]...)
}

// ErrorLine returns the line that names the error, followed by its root cause if another
// line names one. If no line names an error, it returns the last lines.
func ErrorLine(lines []string) string {
	most, first, last, root, traceback := isNoise, "", "", "", false
	var others []string
	weights := weighAll(lines)
	for i, line := range lines {
		traceback = traceback || python().MatchString(line)
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		weight := weights[i]
		if weight > most {
			most, first = weight, line
		}
		if weight == most {
			last = line
		}
		if weight == isOther || most == isNoise {
			others = append(others, line)
		}
		if because().MatchString(line) {
			root = line
		}
	}
	var chosen []string
	switch {
	case most < isGeneral:
		chosen = others[max(0, len(others)-joined):]
	case traceback: // its last line is the error
		chosen = []string{last}
	default:
		chosen = []string{first}
	}
	if root != "" && !slices.Contains(chosen, root) {
		chosen = append(chosen, root)
	}
	return strings.Join(chosen, " | ")
}
