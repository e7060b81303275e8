package replay

import (
	"goblin/registry/compare"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// differences compares a recorded answer with another one. Placeholders of secrets match
// any text.
func (q *sentRequest) differences(params []byte, recorded, got reply, ignored compare.Patterns) ([]Difference, int, error) {
	call := func(answer reply) *compare.Call {
		return &compare.Call{Server: q.Server, Method: q.Method, Name: q.Name, Params: params, Answer: answer.text, IsError: answer.isError}
	}
	r, err := compare.Calls(call(recorded), call(got), compare.Options{Ignore: ignored})
	if err != nil {
		return nil, 0, err
	}
	var all []Difference
	for _, d := range r.Differences {
		if want, ok := rawjson.String(d.A); ok {
			if text, ok := rawjson.String(d.B); ok && recording.MatchesHidden(want, text) {
				continue
			}
		}
		all = append(all, Difference{Path: d.Path.Short(), Recorded: d.A, Got: d.B})
	}
	return all, r.More, nil
}
