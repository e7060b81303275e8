// Package report holds the cost figures and diagnoses that the UI and commands show.
//
// Names come from servers and clients: callers must escape them for display.
package report

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// UnusedAfter is the time without calls until a tool counts as unused.
const UnusedAfter = 30 * 24 * time.Hour

// Report holds all figures.
type Report struct {
	Since time.Time `json:"since"` // start of counting
	// Minutes is the start of the per-minute counts if they do not cover the last hour: a
	// restart drops them.
	Minutes time.Time `json:"minutesSince,omitzero"`
	Daemon  bool      `json:"host"` // false: the figures of the last daemon
	All     Figures   `json:"all"`
	Latency []Bin     `json:"latency"` // of all calls, fastest first
	Servers []Server  `json:"servers"`
	Tools   []Tool    `json:"tools"`
	Clients []Client  `json:"clients"`
}

// Figures summarizes calls.
type Figures struct {
	Calls    uint64    `json:"calls"`
	Errors   uint64    `json:"errors"`
	Bytes    uint64    `json:"answerBytes"`
	P50      float64   `json:"p50Ms"`
	P95      float64   `json:"p95Ms"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	// P50 and P95 exclude waits for a server's start. They also exclude failed and cancelled
	// calls, calls that waited for the user, and calls that rules changed. Waits is the number of calls that waited
	// for the user, WaitedMs their total wait. Starts and StartMs are the same for the
	// server's start. Cancelled includes calls whose client left.
	Waits     uint64 `json:"waits,omitempty"`
	WaitedMs  uint64 `json:"waitedMs,omitempty"`
	Starts    uint64 `json:"starts,omitempty"`
	StartMs   uint64 `json:"startMs,omitempty"`
	Cancelled uint64 `json:"cancelled,omitempty"`
	// Spread holds the durations that P50 and P95 count, fastest first. Rows of removed
	// entries have none.
	Spread []Bin `json:"spread,omitempty"`
	// Hour holds the minutes of the last hour, oldest first, or nothing without calls.
	Hour []Minute `json:"hour,omitempty"`
}

// Minute summarizes the calls of one minute.
type Minute struct {
	Calls      uint32  `json:"calls"`
	NoDuration uint32  `json:"untimed,omitempty"` // calls not included in Millis
	Errors     uint32  `json:"errors,omitempty"`
	Millis     float64 `json:"ms,omitempty"` // average
}

// Bin counts calls with durations up to UpTo and above the previous bin.
type Bin struct {
	UpTo  float64 `json:"upToMs"`
	Calls uint64  `json:"calls"`
}

// Definitions holds the size of tool definitions.
type Definitions struct {
	Bytes  int `json:"definitionBytes"`
	Tokens int `json:"definitionTokens"` // estimated, see [Tokens]
}

// DefinitionSize returns the Definitions for a size in bytes.
func DefinitionSize(bytes int) Definitions { return Definitions{bytes, Tokens(bytes)} }

// Tokens estimates the number of model tokens of definitions: a quarter of the bytes,
// rounded up. Models differ by more than its error, and a model's vocabulary would be as
// large as Goblin.
func Tokens(bytes int) int { return (bytes + 3) / 4 }

// NonToolLists holds the size of lists of prompts, resources, templates and skills.
// Clients show these to users and rarely to models, so [Definitions] excludes them.
type NonToolLists struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
	Tokens  int `json:"tokens"` // estimated, if given to a model
}

// Add counts an entry of the given size.
func (o *NonToolLists) Add(bytes int) {
	o.Entries++
	o.Bytes += bytes
	o.Tokens = Tokens(o.Bytes)
}

// Removed is the name of rows that sum up entries that are no longer listed.
const Removed = "removed"

// Server is the row of a server.
type Server struct {
	Name         string       `json:"name"`
	Removed      bool         `json:"removed,omitempty"` // the sum of removed and disabled servers
	Tools        int          `json:"tools"`
	UnusedTools  int          `json:"unusedTools"`     // not called within [UnusedAfter]
	NonToolLists NonToolLists `json:"others,omitzero"` // known while a daemon runs
	Definitions
	Figures
}

// Tool is the row of a tool.
type Tool struct {
	Server   string `json:"serverId"`
	Name     string `json:"name"` // the server's own
	Listed   string `json:"listed,omitempty"`
	Removed  bool   `json:"removed,omitempty"` // the sum of tools that are no longer listed
	Disabled bool   `json:"off,omitempty"`     // for all clients, so it costs no tokens
	Unused   bool   `json:"unused"`            // listed, and not called within [UnusedAfter]
	Definitions
	Figures
}

// Client is the row of a client, by its name for itself.
type Client struct {
	Name         string       `json:"name"`
	Connected    bool         `json:"connected"`
	Tools        int          `json:"tools"`           // that the client gets
	NonToolLists NonToolLists `json:"others,omitzero"` // that the client gets
	Instructions int          `json:"instructionsBytes,omitempty"`
	Definitions
	Figures
	Limits     *Limits          `json:"limits,omitempty"` // nil if unknown
	Violations []LimitViolation `json:"breaks,omitempty"`
}

// Sort orders all rows by cost, then by calls. Sums of removed entries come last.
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

func compareRemoved(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

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

// Fold combines the rows of servers for which serves returns false into one row, and the
// rows of unlisted tools. Such a row costs no tokens.
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

// figureSum has no quantiles because those of several rows cannot be combined.
type figureSum struct {
	Figures
	rows int
}

func (s *figureSum) add(f *Figures) {
	s.rows++
	s.Calls += f.Calls
	s.Errors += f.Errors
	s.Bytes += f.Bytes
	s.Waits += f.Waits
	s.WaitedMs += f.WaitedMs
	s.Starts += f.Starts
	s.StartMs += f.StartMs
	s.Cancelled += f.Cancelled
	if f.LastUsed.After(s.LastUsed) {
		s.LastUsed = f.LastUsed
	}
}

// SumFigures adds figures up. The sum has no quantiles, spread or minutes.
func SumFigures(all []Figures) Figures {
	var sum figureSum
	for i := range all {
		sum.add(&all[i])
	}
	return sum.Figures
}

// Unused returns the number of unused listed tools and the size of their definitions.
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

// Durations are counted in bins. Each bin ends at √2 times the end of the previous one,
// from 0.1 ms to about 10 min.
const (
	Bins        = 46
	firstBinEnd = 0.1 // in milliseconds
)

var binEnds = func() (all [Bins]time.Duration) {
	for i := range all {
		all[i] = time.Duration(End(i) * float64(time.Millisecond))
	}
	return all
}()

// BinOf returns the bin for a call's duration.
func BinOf(took time.Duration) int {
	bin, _ := slices.BinarySearch(binEnds[:], took)
	return min(bin, Bins-1)
}

// End returns the upper limit of a bin in milliseconds.
func End(bin int) float64 { return firstBinEnd * math.Pow(2, float64(bin)/2) }

// Quantile returns the time within which part of the calls finished, in milliseconds, or
// 0 without calls. The bins limit its error to about 20 %.
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

// Distribution returns the bins from the first to the last one with calls.
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
