package uicontext

import (
	"time"

	"goblin/registry"
	"goblin/registry/termtext"
)

// StopText returns the status of a stopped request, such as "stopped, 41 s left". It
// returns "" for others.
func (c *Context) StopText(number uint64) string {
	for _, s := range c.Reg.Rules().Stopped {
		if s.Number == number && number != 0 {
			return "stopped, " + c.TimeLeft(&s) + " left"
		}
	}
	return ""
}

// TimeLeft returns the time until the default of a stopped request applies.
func (c *Context) TimeLeft(s *registry.StoppedRequest) string {
	left := max(s.Until.Sub(c.Now()), 0)
	return termtext.Age(left.Truncate(time.Second))
}
