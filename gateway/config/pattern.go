package config

import (
	"regexp"
	"sync"
)

// pattern compiles an expression when it is first used: each process of Goblin has
// this package, and most read no config.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
