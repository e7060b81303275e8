package config

import (
	"regexp"
	"sync"
)

// pattern compiles an expression on first use, since most processes of Goblin read no
// config.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
