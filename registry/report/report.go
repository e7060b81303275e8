// Package report holds the cost figures and diagnoses that the UI and commands show.
//
// It must not know how anything is counted. Names are words of servers and clients: the
// caller that shows them makes them safe.
package report

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// UnusedAfter is how long a tool may be unused before that is told of it.
const UnusedAfter = 30 * 24 * time.Hour

// Report is the whole bill.
type Report struct {
	Since time.Time `json:"since"` // when counting began
	// Minutes is since when there are minutes, if calls of the last hour may be missing:
	// minutes are not kept over restarts.
	Minutes time.Time `json:"minutesSince,omitzero"`
	Daemon  bool      `json:"host"` // a daemon runs; else all is as the last one left it
	All     Figures   `json:"all"`
	Latency []Bin     `json:"latency"` // of all calls, the fastest first
	Servers []Server  `json:"servers"`
	Tools   []Tool    `json:"tools"`
	Clients []Client  `json:"clients"`
}

// Figures sum calls up.
type Figures struct {
	Calls    uint64    `json:"calls"`
	Errors   uint64    `json:"errors"`
	Bytes    uint64    `json:"answerBytes"`
	P50      float64   `json:"p50Ms"`
	P95      float64   `json:"p95Ms"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	// Waits counts calls that waited for the user, and WaitedMs sums their waits. P50 and P95
	// leave these calls out, and cancelled ones.
	Waits    uint64 `json:"waits,omitempty"`
	WaitedMs uint64 `json:"waitedMs,omitempty"`
	// Hour are the minutes of the last hour, the oldest first; none when there was no call.
	Hour []Minute `json:"hour,omitempty"`
}

// Minute sums the calls of one up.
type Minute struct {
	Calls      uint32  `json:"calls"`
	NoDuration uint32  `json:"untimed,omitempty"` // calls that Millis leaves out, if there is one
	Errors     uint32  `json:"errors,omitempty"`
	Millis     float64 `json:"ms,omitempty"` // on average
}

// Bin counts the calls that took no longer, and longer than the one before.
type Bin struct {
	UpTo  float64 `json:"upToMs"`
	Calls uint64  `json:"calls"`
}

// Definitions count tools and the bytes of their definitions.
type Definitions struct {
	Bytes  int `json:"definitionBytes"`
	Tokens int `json:"definitionTokens"` // estimated, see [Tokens]
}

// DefinitionSize are definitions of so many bytes.
func DefinitionSize(bytes int) Definitions { return Definitions{bytes, Tokens(bytes)} }

// Tokens estimates how many tokens of a model so many bytes of definitions are: a quarter,
// rounded up. Models differ by more than that is off, and the vocabulary of one alone would
// be as large as Goblin.
func Tokens(bytes int) int { return (bytes + 3) / 4 }

// NonToolLists are what lists of prompts, resources, templates and skills take. Clients show those
// to people, and few give them to a model: they are no part of [Definitions].
type NonToolLists struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
	Tokens  int `json:"tokens"` // estimated, of a model that is given them
}

// Add counts an entry of so many bytes.
func (o *NonToolLists) Add(bytes int) {
	o.Entries++
	o.Bytes += bytes
	o.Tokens = Tokens(o.Bytes)
}

// Removed is the name of the rows that sum up what is no longer listed.
const Removed = "removed"

// Server is a server's part.
type Server struct {
	Name         string       `json:"name"`
	Removed      bool         `json:"removed,omitempty"` // the sum of removed and disabled servers
	Tools        int          `json:"tools"`
	UnusedTools  int          `json:"unusedTools"`     // of those, not called in [UnusedAfter], or never
	NonToolLists NonToolLists `json:"others,omitzero"` // known while a daemon runs
	Definitions
	Figures
}

// Tool is a tool's part.
type Tool struct {
	Server   string `json:"serverId"`
	Name     string `json:"name"` // the server's own
	Listed   string `json:"listed,omitempty"`
	Removed  bool   `json:"removed,omitempty"` // the sum of tools that are no longer listed
	Disabled bool   `json:"off,omitempty"`     // for all clients, so that it costs nothing
	Unused   bool   `json:"unused"`            // it is listed, and was not called in [UnusedAfter], or never
	Definitions
	Figures
}

// Client is a client's part, by the name that it introduces itself with.
type Client struct {
	Name         string       `json:"name"`
	Connected    bool         `json:"connected"`
	Tools        int          `json:"tools"`                       // that it is shown
	NonToolLists NonToolLists `json:"others,omitzero"`             // likewise
	Instructions int          `json:"instructionsBytes,omitempty"` // what it is told of the servers
	Definitions
	Figures
	Limits     *Limits          `json:"limits,omitempty"` // nil: none are known
	Violations []LimitViolation `json:"breaks,omitempty"`
}

// Sort orders all rows by cost, then by calls. The sums of removed entries come last.
func (r *Report) Sort() {
	slices.SortFunc(r.Servers, func(a, b Server) int {
		return cmp.Or(compareRemoved(a.Removed, b.Removed), compareCost(a.Definitions, b.Definitions, a.Figures, b.Figures, a.Name, b.Name))
	})
	slices.SortFunc(r.Tools, func(a, b Tool) int {
		return cmp.Or(compareRemoved(a.Removed, b.Removed), compareCost(a.Definitions, b.Definitions, a.Figures, b.Figures, a.Server+"\x00"+a.Name, b.Server+"\x00"+b.Name))
	})
	slices.SortFunc(r.Clients, func(a, b Client) int {
		return compareCost(a.Definitions, b.Definitions, a.Figures, b.Figures, a.Name, b.Name)
	})
}

// compareRemoved sorts a removed row last.
func compareRemoved(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareCost sorts rows by the size of their definitions, then by calls, the largest first.
func compareCost(da, db Definitions, a, b Figures, nameA, nameB string) int {
	switch {
	case da.Bytes != db.Bytes:
		return db.Bytes - da.Bytes
	case a.Calls > b.Calls, a.Calls == b.Calls && nameA < nameB:
		return -1
	case a.Calls == b.Calls && nameA == nameB:
		return 0
	}
	return 1
}

// Fold sums up the rows of servers that serves excludes, and of tools that their server
// no longer lists, in one row each. Such a row costs no tokens.
func (r *Report) Fold(serves func(server string) bool) {
	var servers, tools figureSum
	listing := make(map[string]bool)
	r.Servers = slices.DeleteFunc(r.Servers, func(s Server) bool {
		listing[s.Name] = s.Tools > 0
		gone := !serves(s.Name)
		if gone {
			servers.add(&s.Figures)
		}
		return gone
	})
	r.Tools = slices.DeleteFunc(r.Tools, func(t Tool) bool {
		gone := !serves(t.Server) || t.Listed == "" && !t.Disabled && listing[t.Server]
		if gone {
			tools.add(&t.Figures)
		}
		return gone
	})
	if servers.rows > 0 {
		r.Servers = append(r.Servers, Server{Name: Removed, Removed: true, Figures: servers.Figures})
	}
	if tools.rows > 0 {
		r.Tools = append(r.Tools, Tool{Name: Removed, Listed: Removed, Removed: true, Figures: tools.Figures})
	}
}

// figureSum adds up figures. Quantiles of several rows cannot be combined, so it has none.
type figureSum struct {
	Figures
	rows int
}

func (s *figureSum) add(f *Figures) {
	s.rows++
	s.Calls += f.Calls
	s.Errors += f.Errors
	s.Bytes += f.Bytes
	if f.LastUsed.After(s.LastUsed) {
		s.LastUsed = f.LastUsed
	}
}

// Unused are the tools that are listed and not used, and what their definitions take.
func (r *Report) Unused() (tools int, all Definitions) {
	bytes := 0
	for i := range r.Tools {
		if r.Tools[i].Unused {
			tools++
			bytes += r.Tools[i].Definitions.Bytes
		}
	}
	return tools, DefinitionSize(bytes)
}

// Scale is how times are counted: in bins, each of which ends at √2 of the one before, from
// a tenth of a millisecond to some ten minutes.
const (
	Bins        = 46
	firstBinEnd = 0.1 // end of the first bin, in milliseconds
)

// binEnds are the upper limits of the bins.
var binEnds = func() (all [Bins]time.Duration) {
	for i := range all {
		all[i] = time.Duration(End(i) * float64(time.Millisecond))
	}
	return all
}()

// BinOf is where a call counts that took so long.
func BinOf(took time.Duration) int {
	bin, _ := slices.BinarySearch(binEnds[:], took)
	return min(bin, Bins-1)
}

// End is the most milliseconds that a bin counts.
func End(bin int) float64 { return firstBinEnd * math.Pow(2, float64(bin)/2) }

// Quantile is the time within which a part of the calls was answered, 0 for no calls. It is
// as exact as the bins are: off by a fifth at most.
func Quantile(bins *[Bins]uint64, part float64) float64 {
	var all uint64
	for _, n := range bins {
		all += n
	}
	rank, seen := part*float64(all), 0.0
	for i, n := range bins {
		if seen += float64(n); n > 0 && seen >= rank {
			return End(i) / math.Pow(2, 0.25)
		}
	}
	return 0
}

// Distribution is the bins with calls, and those between.
func Distribution(bins *[Bins]uint64) []Bin {
	out := []Bin{}
	for i, n := range bins {
		if n > 0 || len(out) > 0 {
			out = append(out, Bin{math.Round(End(i)*1000) / 1000, n})
		}
	}
	for len(out) > 0 && out[len(out)-1].Calls == 0 {
		out = out[:len(out)-1]
	}
	return out
}
