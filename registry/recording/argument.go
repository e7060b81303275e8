package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Argument is a recording that a user named on a command line.
type Argument struct {
	Path   string // a file or a folder
	Number uint64 // of one request, or 0 for all
}

// ParseArgument parses FILE or FILE#NUMBER. A name that exists with its # is a file.
func ParseArgument(text string) (Argument, error) {
	path, number, ok := cutLast(text, "#")
	if !ok || exists(text) {
		if text == "" {
			return Argument{}, errors.New("the name of a recording is missing")
		}
		return Argument{Path: text}, nil
	}
	n, err := strconv.ParseUint(number, 10, 64)
	switch {
	case path == "":
		return Argument{}, fmt.Errorf("%q: the name of the recording before # is missing", text)
	case err != nil && !exists(path):
		return Argument{Path: text}, nil // opening it reports that it is missing
	case err != nil || n == 0:
		return Argument{}, fmt.Errorf("%q: the part after # must be the number of a request, such as %s#17", text, filepath.Base(path))
	}
	return Argument{Path: path, Number: n}, nil
}

// String returns the argument as [ParseArgument] reads it.
func (a Argument) String() string {
	if a.Number == 0 {
		return a.Path
	}
	return fmt.Sprintf("%s#%d", a.Path, a.Number)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ErrNoRequest is the cause of an error about a request that a recording lacks.
var ErrNoRequest = errors.New("no such request")
