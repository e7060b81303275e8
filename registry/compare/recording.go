package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
)

// Limits of a comparison of recordings.
const (
	// maxCalls is the number of calls of each recording that are compared.
	maxCalls = 1_000_000
	// maxPairs is the number of calls that a result describes, of each Op.
	maxPairs = 200
	// maxBriefArguments is the length of CallInfo.Arguments, in bytes.
	maxBriefArguments = 300
)

// CallInfo describes a recorded call.
type CallInfo struct {
	Number    uint64 // 0 if unknown
	Time      time.Time
	Client    string
	Server    string
	Method    string
	Name      string // as the client spelled it
	Took      time.Duration
	Size      int64 // of the answer, in bytes
	Outcome   string
	Arguments string // JSON; the beginning of long ones
}

// CallPair is a pair of calls with the same server, method, name and arguments, or one
// call without partner.
type CallPair struct {
	Op     Op
	A, B   *CallInfo
	Result *Result // of Changed
	// Problem explains why Result is nil.
	Problem string
}

// RecordingInfo describes a recording.
type RecordingInfo struct {
	Calls  int
	Took   time.Duration // of all calls together
	Size   int64         // of all answers, in bytes
	bodies bool
}

// Recordings is the outcome of a comparison of recordings.
type Recordings struct {
	A, B                          RecordingInfo
	Same, Different, OnlyA, OnlyB int
	Pairs                         []CallPair // at most maxPairs of each Op, in the order of A
	Definitions                   []EntryChange
	SameDefinitions               int
	Problems                      []string
}

// IsEqual reports whether there are no differences.
func (r *Recordings) IsEqual() bool {
	return r.Different+r.OnlyA+r.OnlyB+len(r.Definitions) == 0
}

// OpenRecording opens a recording of a file or folder.
type OpenRecording func() (*recording.Reader, error)

// CompareRecordings compares the calls and the last definitions of two recordings. It
// reads each of them twice and holds less than 100 bytes per call.
func CompareRecordings(openA, openB OpenRecording, o Options) (*Recordings, error) {
	a, err := readCalls(openA, o.Ignore)
	if err != nil {
		return nil, err
	}
	b, err := readCalls(openB, o.Ignore)
	if err != nil {
		return nil, err
	}
	if a.info.bodies != b.info.bodies {
		return nil, errors.New("only one of the recordings has params and answers; record both with or both without \"bodies\"")
	}
	r := &Recordings{A: a.info, B: b.info}
	if !a.info.bodies {
		r.Problems = append(r.Problems, "the recordings have no params and answers; only names and outcomes were compared")
	}
	r.Problems = append(r.Problems, a.problems("A")...)
	r.Problems = append(r.Problems, b.problems("B")...)
	if r.Definitions, r.SameDefinitions, err = Catalogs(a.entries(), b.entries(), Options{}); err != nil {
		return nil, err
	}
	return r, r.pairCalls(a, b, openA, openB, o)
}

// recordedCall has the hashes of one call.
type recordedCall struct{ key, result uint64 }

type recordedCalls struct {
	scanner
	info  RecordingInfo
	calls []recordedCall
	cut   bool
}

// scanner reads a recording and follows the definitions of its servers.
type scanner struct {
	*recording.Reader
	lists  map[string]map[string][]json.RawMessage // by server and list
	bodies bool
}

func (s *scanner) next() (*recording.Line, error) {
	l, err := s.Next()
	if err != nil {
		return nil, err
	}
	switch l.Type {
	case recording.TypeRecording:
		s.bodies = l.Bodies
	case recording.TypeServer:
		if s.lists == nil {
			s.lists = map[string]map[string][]json.RawMessage{}
		}
		for list := range s.lists[l.Server] {
			s.Keep(l.Server, list, nil)
		}
		for _, list := range slices.Sorted(maps.Keys(l.Lists)) {
			l.Lists[list] = s.Keep(l.Server, list, l.Lists[list])
		}
		s.lists[l.Server] = l.Lists
	case recording.TypeList:
		if s.lists[l.Server] == nil {
			if s.lists == nil {
				s.lists = map[string]map[string][]json.RawMessage{}
			}
			s.lists[l.Server] = map[string][]json.RawMessage{}
		}
		s.lists[l.Server][l.List] = s.Keep(l.Server, l.List, l.Change(s.lists[l.Server][l.List]))
	}
	return l, nil
}

func (s *scanner) entries() (all []Entry) {
	for server, lists := range s.lists {
		for list, definitions := range lists {
			for _, d := range definitions {
				all = append(all, Entry{Server: server, Kind: strings.TrimSuffix(list, "s"), Name: recording.Key(list, d), Definition: d})
			}
		}
	}
	return all
}

// definition returns the definition that a call was made with, or nil if unknown.
func (s *scanner) definition(c *CallInfo, own string) []byte {
	list := map[string]string{"tools/call": "tools", "prompts/get": "prompts"}[c.Method]
	for _, d := range s.lists[c.Server][list] {
		if recording.Key(list, d) == own {
			return d
		}
	}
	return nil
}

// isCompared reports whether a line is a client's request to a server.
func isCompared(l *recording.Line) bool {
	if l.Type != recording.TypeRequest || l.Direction != "" || l.Server == "" {
		return false
	}
	return l.Method != "initialize" && l.Method != "ping" && l.Method != "logging/setLevel" && !strings.HasSuffix(l.Method, "/list")
}

// call returns the call of a line and its description.
func (s *scanner) call(l *recording.Line) (*Call, *CallInfo, error) {
	rec := l.Record()
	c := &Call{Server: l.Server, Method: l.Method, Name: cmp.Or(l.Original, l.Name), IsError: HasErrorObject(&rec)}
	info := infoOf(&rec)
	var errP, errA error
	c.Params, errP = s.Body(l.Params)
	c.Answer, errA = s.Body(l.Answer)
	_, arguments := c.input(c)
	info.Arguments = briefText(arguments)
	return c, info, errors.Join(errP, errA)
}

// infoOf describes a request.
func infoOf(rec *registry.TrafficRecord) *CallInfo {
	return &CallInfo{
		Number: rec.Number, Time: rec.Time, Client: rec.Client, Server: rec.Server, Method: rec.Method, Name: rec.Name,
		Took: rec.Duration - rec.UserWait, Size: rec.Size, Outcome: rec.Status,
	}
}

// HasErrorObject reports whether the answer of a request is a JSON-RPC error object. The
// code of a cancelled request does not count, but its answer may still be one.
func HasErrorObject(rec *registry.TrafficRecord) bool {
	if rec.Status != registry.StatusCancelled {
		return rec.Code != 0
	}
	var e struct{ Code *int }
	return json.Unmarshal(rec.Response, &e) == nil && e.Code != nil
}

func briefText(text []byte) string {
	if len(text) > maxBriefArguments {
		return strings.ToValidUTF8(string(text[:maxBriefArguments]), "") + "…"
	}
	return string(text)
}

func readCalls(open OpenRecording, ignore Patterns) (*recordedCalls, error) {
	reader, err := open()
	if err != nil {
		return nil, err
	}
	r := &recordedCalls{scanner: scanner{Reader: reader}}
	defer reader.Close()
	for {
		l, err := r.next()
		if errors.Is(err, io.EOF) {
			r.info.Calls, r.info.bodies = len(r.calls), r.bodies
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if !isCompared(l) {
			continue
		}
		if len(r.calls) == maxCalls {
			r.cut = true
			continue
		}
		c, info, _ := r.call(l) // the second reading reports it
		r.calls = append(r.calls, recordedCall{c.inputHash(ignore), c.answerHash(ignore, info.Outcome)})
		r.info.Took += info.Took
		r.info.Size += info.Size
	}
}

func (r *recordedCalls) problems(side string) (all []string) {
	if r.cut {
		all = append(all, fmt.Sprintf("%s: only the first %d calls were compared", side, maxCalls))
	}
	first, more := r.Problems()
	for _, p := range first {
		all = append(all, side+": "+p.String())
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("%s: %d more problems", side, more))
	}
	return all
}

// inputHash returns equal numbers for calls with the same target and arguments.
func (c *Call) inputHash(ignore Patterns) uint64 {
	name, input := c.input(c)
	h := hashOf('k', c.Server+"\x00"+c.Method+"\x00"+c.Name)
	return h*31 + partHash(name, input, ignore)
}

// answerHash returns equal numbers for equal answers.
func (c *Call) answerHash(ignore Patterns, outcome string) uint64 {
	if c.IsError {
		return hashOf('e', "") + partHash("error", c.Answer, ignore)
	}
	if len(c.Answer) == 0 {
		return hashOf('o', outcome)
	}
	value, form := essence(c)
	if form == "" {
		value = c.Answer
	}
	return hashOf('r', form) + partHash("result", value, ignore)
}

func partHash(name string, text []byte, ignore Patterns) uint64 {
	if len(text) == 0 {
		return 0
	}
	count := 0
	v, err := parsePart(text, ignore, name, false, &count)
	switch {
	case err != nil || v == nil:
		return hashOf('x', string(text))
	case v.ignored:
		return 1
	}
	return v.hash
}

type callPair struct{ a, b int } // indexes; -1 if missing

// pairCalls pairs calls with equal targets and arguments in order.
func (r *Recordings) pairCalls(a, b *recordedCalls, openA, openB OpenRecording, o Options) error {
	partners := make(map[uint64][]int32, len(b.calls))
	for j := range b.calls {
		partners[b.calls[j].key] = append(partners[b.calls[j].key], int32(j))
	}
	paired := make([]bool, len(b.calls))
	var wanted []callPair
	want := func(p callPair, n *int) {
		if *n++; *n <= maxPairs {
			wanted = append(wanted, p)
		}
	}
	for i := range a.calls {
		c := &a.calls[i]
		rest := partners[c.key]
		if len(rest) == 0 {
			want(callPair{i, -1}, &r.OnlyA)
			continue
		}
		j := int(rest[0])
		partners[c.key] = rest[1:]
		paired[j] = true
		if b.calls[j].result == c.result {
			r.Same++
		} else {
			want(callPair{i, j}, &r.Different)
		}
	}
	for j, ok := range paired {
		if !ok {
			want(callPair{-1, j}, &r.OnlyB)
		}
	}
	return r.describe(wanted, openA, openB, o)
}

type describedCall struct {
	call *Call
	info *CallInfo
	err  error
}

// describe reads the recordings again for the calls of pairs.
func (r *Recordings) describe(pairs []callPair, openA, openB OpenRecording, o Options) error {
	left, err := readWanted(openA, pairs, func(p callPair) (at, partner int) { return p.a, p.b })
	if err != nil {
		return err
	}
	right, err := readWanted(openB, pairs, func(p callPair) (at, partner int) { return p.b, p.a })
	if err != nil {
		return err
	}
	for _, p := range pairs {
		a, b := left[p.a], right[p.b]
		switch {
		case b == nil && a != nil:
			r.Pairs = append(r.Pairs, CallPair{Op: Removed, A: a.info})
		case a == nil && b != nil:
			r.Pairs = append(r.Pairs, CallPair{Op: Added, B: b.info})
		case a != nil:
			out := CallPair{Op: Changed, A: a.info, B: b.info}
			err := errors.Join(a.err, b.err)
			if err == nil {
				out.Result, err = Calls(a.call, b.call, o)
			}
			switch {
			case err != nil:
				out.Problem = err.Error()
			case out.Result.IsEqual() && a.info.Outcome != b.info.Outcome:
				out.Problem = "outcome: " + a.info.Outcome + " → " + b.info.Outcome
			case out.Result.IsEqual():
				r.Different--
				r.Same++
				continue
			}
			r.Pairs = append(r.Pairs, out)
		}
	}
	return nil
}

// maxDescribed is the size of all bodies of one recording that are compared in detail, in
// bytes.
const maxDescribed = 64 << 20

// readWanted reads the calls of pairs again, by index. Calls without partner have no
// bodies.
func readWanted(open OpenRecording, pairs []callPair, side func(callPair) (at, partner int)) (map[int]*describedCall, error) {
	found := make(map[int]*describedCall, len(pairs))
	var at []int
	alone := map[int]bool{}
	for _, p := range pairs {
		if i, partner := side(p); i >= 0 {
			at = append(at, i)
			alone[i] = partner < 0
		}
	}
	if len(at) == 0 {
		return found, nil
	}
	slices.Sort(at)
	size := 0
	reader, err := open()
	if err != nil {
		return nil, err
	}
	s := scanner{Reader: reader}
	defer reader.Close()
	for n := 0; len(at) > 0; {
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			return found, nil // the recording became shorter
		}
		if err != nil {
			return nil, err
		}
		if !isCompared(l) {
			continue
		}
		if n == at[0] {
			d := &describedCall{}
			d.call, d.info, d.err = s.call(l)
			if size += len(d.call.Params) + len(d.call.Answer); alone[n] {
				d.call = nil
			} else if size > maxDescribed {
				d.call, d.err = nil, errors.New("too large to describe; compare the calls alone, by their numbers")
			}
			found[n], at = d, at[1:]
		}
		n++
	}
	return found, nil
}

// RecordedCall is one call of a recording.
type RecordedCall struct {
	Call
	Info       *CallInfo
	Definition []byte // of the tool or prompt, or nil if unknown
	// Bodies is false if the recording has no params and answers.
	Bodies bool
}

// FindCall returns the request with a number, and the definition that it was made with.
// It fails if several files of a folder have the number.
func FindCall(open OpenRecording, number uint64) (*RecordedCall, error) {
	reader, err := open()
	if err != nil {
		return nil, err
	}
	s := scanner{Reader: reader}
	defer reader.Close()
	var found *RecordedCall
	running, in := false, ""
	for {
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if l.Number != number || l.Type != recording.TypeRequest {
			running = running || l.Number == number && l.Type == recording.TypeRunning
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s and %s both contain request %d; name one file", filepath.Base(in), filepath.Base(s.File()), number)
		}
		c, info, err := s.call(l)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		in = s.File()
		found = &RecordedCall{Call: *c, Info: info, Definition: s.definition(info, c.Name), Bodies: s.bodies}
		if _, all := s.Files(); all == 1 {
			break
		}
	}
	switch {
	case found == nil && running:
		return nil, fmt.Errorf("request %d has no answer in the recording", number)
	case found == nil:
		return nil, fmt.Errorf("request %d: %w; \"goblin traffic --from\" lists the numbers", number, recording.ErrNoRequest)
	}
	return found, nil
}
