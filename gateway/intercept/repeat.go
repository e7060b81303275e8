package intercept

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"goblin/registry/rawjson"
	"goblin/registry/rule"
)

// sentRequests are stateless requests that passed a stop and that the server answered by
// questions for the client. The client repeats such a request with the answers. Each
// entry lets one repetition pass the same rule.
type sentRequests struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*sentRequest
}

type sentRequest struct {
	rule   *entry
	params []byte // as changed by the user, or nil
	until  time.Time
}

const (
	maxSent = 1024
	// sentTime is the maximum time between a server's questions and the client's answers.
	sentTime = 15 * time.Minute
)

// Asked records that the server answered a request by an input_required result. x may be
// nil.
func (g *Gate) Asked(x *Exchange, result []byte) {
	if x == nil || x.allowed == nil {
		return
	}
	key := x.sentKey(rawjson.Get(result, "requestState"), rawjson.Get(result, "inputRequests"))
	g.sent.mu.Lock()
	defer g.sent.mu.Unlock()
	if g.sent.all == nil {
		g.sent.all = make(map[[sha256.Size]byte]*sentRequest)
	}
	now := time.Now()
	maps.DeleteFunc(g.sent.all, func(_ [sha256.Size]byte, s *sentRequest) bool { return now.After(s.until) })
	if len(g.sent.all) < maxSent { // otherwise the user is asked again
		g.sent.all[key] = &sentRequest{rule: x.allowed.rule, params: x.allowed.params, until: now.Add(sentTime)}
	}
}

// take returns the sent request that x continues, or nil.
func (s *sentRequests) take(x *Exchange, on rule.On) *sentRequest {
	if on != rule.OnRequest || x.Request.Modern() == nil || x.Request.Outer() != x.Request {
		return nil
	}
	sent := x.Request.SentParams()
	state, answers := rawjson.Get(sent, "requestState"), rawjson.Get(sent, "inputResponses")
	x.clientParams = x.Params
	if state == nil && answers == nil {
		return nil
	}
	key := x.sentKey(state, answers)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[key]
	if one == nil || time.Now().After(one.until) {
		return nil
	}
	delete(s.all, key)
	return one
}

// sentKey identifies a request of one client by the server's state. Without a state, the
// names of the server's questions count.
func (x *Exchange) sentKey(state, inputs []byte) [sha256.Size]byte {
	address := ""
	if m := x.Request.Modern(); m != nil {
		address, _, _ = net.SplitHostPort(m.Remote) // "" on byte streams
	}
	if state == nil || string(state) == "null" {
		var names []string
		for k := range rawjson.Members(inputs) {
			names = append(names, string(k.Name()))
		}
		slices.Sort(names)
		state = rawjson.Strings(names)
	} else {
		state = rawjson.AppendCanonical([]byte("state "), state)
	}
	return digest(x.clientParams, x.Request.Session().ID(), address, x.Request.ClientName(), x.Request.Method(), string(state))
}

// maxCanonical is the maximum size of params whose digest ignores the order of members.
const maxCanonical = 256 << 10

// digest returns a digest of params without metadata, and of words.
func digest(params []byte, words ...string) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write(rawjson.Strings(words))
	if params = rawjson.RemoveMember(params, "_meta"); len(params) <= maxCanonical {
		params = rawjson.AppendCanonical(nil, params)
	}
	hash.Write(params)
	return [sha256.Size]byte(hash.Sum(nil))
}

// Limits of the stored answers, in bytes.
const (
	maxAnswers     = 256
	maxAnswer      = 4 << 20
	maxAnswersSize = 32 << 20
)

// answerKey identifies the equal requests of one client.
type answerKey struct {
	session string
	digest  [sha256.Size]byte
}

// answerKey includes the name: the params of a client's call of call_tool are replaced.
func (x *Exchange) answerKey() *answerKey {
	r := x.Request
	return &answerKey{r.Session().ID(), digest(x.Params, r.ClientName(), r.Method())}
}

// answers are the last answers of clients to requests that a rule for stale answers
// selects. They exist while such a rule is enabled.
type answers struct {
	mu    sync.Mutex
	all   map[answerKey][]byte
	order []answerKey // the oldest first
	size  int
}

func (a *answers) get(key *answerKey) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[*key]
}

func (a *answers) put(key *answerKey, answer []byte) {
	if len(answer) > maxAnswer {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = make(map[answerKey][]byte)
	}
	a.removeLocked(func(k answerKey) bool { return k == *key })
	a.all[*key], a.order, a.size = bytes.Clone(answer), append(a.order, *key), a.size+len(answer)
	for len(a.order) > maxAnswers || a.size > maxAnswersSize {
		oldest := a.order[0]
		a.removeLocked(func(k answerKey) bool { return k == oldest })
	}
}

func (a *answers) removeLocked(is func(answerKey) bool) {
	a.order = slices.DeleteFunc(a.order, func(k answerKey) bool {
		if !is(k) {
			return false
		}
		a.size -= len(a.all[k])
		delete(a.all, k)
		return true
	})
}

func (a *answers) drop(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeLocked(func(k answerKey) bool { return k.session == session })
}

func (a *answers) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.order, a.size = nil, nil, 0
}
