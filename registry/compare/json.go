package compare

import (
	"encoding/json"
	"time"
)

// Forms of the JSON output. Their member names are public.
type (
	reportJSON struct {
		Kind        string            `json:"kind"`
		Equal       bool              `json:"equal"`
		Ignored     []string          `json:"ignored"`
		A           *callJSON         `json:"a,omitempty"`
		B           *callJSON         `json:"b,omitempty"`
		Same        *int              `json:"same,omitempty"`
		Different   *int              `json:"different,omitempty"`
		OnlyA       *int              `json:"onlyA,omitempty"`
		OnlyB       *int              `json:"onlyB,omitempty"`
		Differences []*differenceJSON `json:"differences,omitempty"`
		More        int               `json:"more,omitempty"`
		Calls       []pairJSON        `json:"calls,omitempty"`
		Entries     []entryJSON       `json:"entries,omitempty"`
		Problems    []string          `json:"problems,omitempty"`
	}
	differenceJSON struct {
		Op    Op              `json:"op"`
		Path  string          `json:"path"`
		PathB string          `json:"pathB,omitempty"`
		A     json.RawMessage `json:"a,omitempty"`
		B     json.RawMessage `json:"b,omitempty"`
	}
	callJSON struct {
		Number    uint64    `json:"n,omitempty"`
		Time      time.Time `json:"time"`
		Client    string    `json:"client,omitempty"`
		Server    string    `json:"server"`
		Method    string    `json:"method"`
		Name      string    `json:"name,omitempty"`
		Took      float64   `json:"took"` // ms
		Size      int64     `json:"size"`
		Outcome   string    `json:"outcome,omitempty"`
		Arguments string    `json:"arguments,omitempty"`
	}
	pairJSON struct {
		Op          Op                `json:"op"`
		A           *callJSON         `json:"a,omitempty"`
		B           *callJSON         `json:"b,omitempty"`
		Differences []*differenceJSON `json:"differences,omitempty"`
		More        int               `json:"more,omitempty"`
		Problem     string            `json:"problem,omitempty"`
	}
	entryJSON struct {
		Op          Op                `json:"op"`
		Server      string            `json:"server"`
		Kind        string            `json:"kind"`
		Name        string            `json:"name,omitempty"`
		What        []string          `json:"what,omitempty"`
		Differences []*differenceJSON `json:"differences,omitempty"`
		More        int               `json:"more,omitempty"`
	}
)

// JSON returns the report as a value to encode.
func (r *Report) JSON() any {
	out := reportJSON{Kind: r.Kind, Equal: r.IsEqual(), Ignored: append([]string{}, r.Ignored...)}
	if r.Kind == KindCall {
		out.A, out.B = callForm(r.A.Call.Info), callForm(r.B.Call.Info)
	}
	switch rec := r.Recordings; {
	case rec != nil:
		out.Same, out.Different, out.OnlyA, out.OnlyB = &rec.Same, &rec.Different, &rec.OnlyA, &rec.OnlyB
		out.Entries, out.Problems = entryForms(rec.Definitions), rec.Problems
		for _, p := range rec.Pairs {
			form := pairJSON{Op: p.Op, A: callForm(p.A), B: callForm(p.B), Problem: p.Problem}
			form.Differences, form.More = differenceForms(p.Result)
			out.Calls = append(out.Calls, form)
		}
	case r.Result != nil:
		out.Differences, out.More = differenceForms(r.Result)
	default:
		out.Same, out.Entries = &r.Same, entryForms(r.Entries)
	}
	return out
}

func entryForms(changes []EntryChange) (all []entryJSON) {
	for _, c := range changes {
		form := entryJSON{Op: c.Op, Server: c.Server, Kind: c.Kind, Name: c.Name, What: c.What}
		form.Differences, form.More = differenceForms(c.Result)
		all = append(all, form)
	}
	return all
}

func differenceForms(r *Result) (all []*differenceJSON, more int) {
	if r == nil {
		return nil, 0
	}
	for _, d := range r.Differences {
		form := &differenceJSON{Op: d.Op, Path: d.Path.String(), A: d.A, B: d.B}
		if d.PathB != nil {
			form.PathB = d.PathB.String()
		}
		all = append(all, form)
	}
	return all, r.More
}

func callForm(c *CallInfo) *callJSON {
	if c == nil {
		return nil
	}
	return &callJSON{
		Number: c.Number, Time: c.Time, Client: c.Client, Server: c.Server, Method: c.Method, Name: c.Name,
		Took: float64(c.Took) / float64(time.Millisecond), Size: c.Size, Outcome: c.Outcome, Arguments: c.Arguments,
	}
}
