package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
	"goblin/registry/suggest"
	"goblin/registry/termtext"
)

// Miss is the code of the error for a request without a recorded call.
const Miss = "REPLAY_MISS"

const (
	// maxCandidates is the number of recorded calls that a miss is compared with.
	// maxCompared is the size of the largest one, in bytes.
	maxCandidates = 200
	maxCompared   = 1 << 20
	// maxListed is the number of differences or names in a message.
	maxListed = 5
)

// take returns the recorded call for a request. Equal requests get the recorded calls in
// order, and the last one again afterwards. A miss is an error.
func (s *Server) take(t target, params []byte) (*call, *jsonrpc.Error) {
	members, err := decode(t, params, s.rules)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	key, err := digestOf(members)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	work := maxWork
	g := s.find(t, key, members, &work)
	if g == nil && hasHidden(params) {
		g = s.findFilled(t, members, &work)
	}
	switch {
	case g != nil:
	case work == 0:
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidParams, Data: rawjson.Object("code", Miss, "server", s.Name),
			Message: fmt.Sprintf("%s: the params are too large to compare with all hidden secrets of the recording", Miss),
		}
	default:
		return nil, s.miss(t, members, &work)
	}
	return g.take(), nil
}

func (s *Server) find(t target, key digest, members map[string]any, work *int) *group {
	if of := s.targets[t]; of != nil {
		if g := of.groups[key]; g != nil {
			return g
		}
		if g := s.findHidden(of, members, work); g != nil {
			return g
		}
	}
	for _, other := range s.hidden {
		if other.method == t.method {
			if g := s.findHidden(s.targets[other], members, work); g != nil {
				return g
			}
		}
	}
	return nil
}

func (s *Server) findHidden(t *targetCalls, members map[string]any, work *int) *group {
	for _, g := range t.hidden {
		c := newComparer(s.secrets, 1, work)
		c.compare("", g.hidden, members)
		if *work == 0 {
			return nil
		}
		if len(c.differences) == 0 {
			s.secrets.add(c.found)
			return g
		}
	}
	return nil
}

// findFilled returns the calls for a request with placeholders. Recorded settings have them
// in place of the texts that overrides fill in.
func (s *Server) findFilled(t target, members map[string]any, work *int) (found *group) {
	s.eachCandidate(s.targets[t], func(_ *call, recorded map[string]any) bool {
		c := newComparer(nil, 1, work)
		c.compare("", members, recorded)
		if len(c.differences) > 0 || *work == 0 {
			return *work > 0
		}
		key, err := digestOf(recorded)
		if err == nil {
			found = s.targets[t].groups[key]
		}
		return found == nil
	})
	return found
}

// eachCandidate calls do with the params of recorded calls until it returns false.
func (s *Server) eachCandidate(of *targetCalls, do func(c *call, recorded map[string]any) bool) {
	if of == nil {
		return
	}
	compared := 0
	for _, c := range of.calls {
		if compared == maxCandidates {
			return
		}
		params, err := s.store.get(c.params)
		if err != nil || len(params) > maxCompared {
			continue
		}
		recorded, err := decode(c.target, params, s.rules)
		if err != nil {
			continue
		}
		compared++
		if !do(c, recorded) {
			return
		}
	}
}

// take skips calls without an answer, unless all are.
func (g *group) take() *call {
	for i := g.next; i < len(g.calls); i++ {
		if g.calls[i].usable() {
			g.next = i + 1
			return g.calls[i]
		}
	}
	for _, c := range slices.Backward(g.calls) {
		if c.usable() {
			return c
		}
	}
	g.next = min(g.next+1, len(g.calls))
	return g.calls[g.next-1]
}

// miss returns the error for a request that was not recorded.
func (s *Server) miss(t target, members map[string]any, work *int) *jsonrpc.Error {
	what := t.method
	if t.name != "" {
		what += " " + termtext.Truncate(termtext.Line(fmt.Sprintf("%q", t.name)), 200)
	}
	data := rawjson.Object("code", Miss, "server", s.Name)
	of := s.targets[t]
	if of == nil {
		return &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidParams, Data: data,
			Message: fmt.Sprintf("%s: no %s of server %q was recorded%s", Miss, what, s.Name, s.otherTargets(t)),
		}
	}
	number, differences := s.closest(of, members, work)
	var texts []string
	var list [][]byte
	for i, d := range differences {
		if i == maxListed {
			texts = append(texts, fmt.Sprintf("%d more", len(differences)-maxListed))
			break
		}
		texts = append(texts, d.String())
		list = append(list, rawjson.Object("path", d.Path, "recorded", shown(d.Recorded), "got", shown(d.Got)))
	}
	data = rawjson.SetMember(data, "closest", fmt.Appendf(nil, "%d", number))
	data = rawjson.SetMember(data, "differences", rawjson.Array(list...))
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Data: data,
		Message: fmt.Sprintf("%s: no %s of server %q with these params was recorded; closest is #%d: %s", Miss, what, s.Name, number, strings.Join(texts, "; ")),
	}
}

// closest returns the recorded call with the fewest differences.
func (s *Server) closest(of *targetCalls, members map[string]any, work *int) (number uint64, differences []difference) {
	s.eachCandidate(of, func(c *call, recorded map[string]any) bool {
		one := newComparer(s.secrets, maxDifferences, work)
		one.compare("", recorded, members)
		if *work == 0 && number != 0 {
			return false
		}
		if number == 0 || len(one.differences) < len(differences) {
			number, differences = c.number, one.differences
		}
		return true
	})
	return number, differences
}

// otherTargets names recorded targets of the same method.
func (s *Server) otherTargets(t target) string {
	var names []string
	for other := range maps.Keys(s.targets) {
		if other.method == t.method && other.name != "" {
			names = append(names, other.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	nearest := suggest.New(t.name)
	for _, name := range names {
		nearest.Add(name)
	}
	if near := nearest.Best(); len(near) > 0 {
		names = near
	}
	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(" and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	for i, name := range names {
		names[i] = termtext.Truncate(termtext.Line(cmp.Or(name, "?")), 100)
	}
	return "; recorded: " + strings.Join(names, ", ") + more
}
