package compare

import (
	"encoding/json"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/compare"
)

// Answer is one of two answers to a saved call. Its texts are untrusted.
type Answer struct {
	Title, Facts  string
	Method, Name  string
	Params        json.RawMessage
	Result, Error json.RawMessage // one of them, see the members of JSON-RPC
}

// Answers compares two answers to one call.
func (m *Marks) Answers(a, b Answer) tea.Cmd {
	side := func(x Answer) *Side {
		s := &Side{Key: "answer " + x.Facts, Title: x.Title, Facts: x.Facts, Subject: "saved " + x.Title}
		s.call = &compare.Call{Method: x.Method, Name: x.Name, Params: x.Params, Answer: x.Result}
		if x.Error != nil {
			s.call.Answer, s.call.IsError = x.Error, true
		}
		return s
	}
	return m.open(side(a), side(b))
}
