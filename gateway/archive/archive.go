// Package archive loads a recording into a registry and shows it without servers.
//
// [Load] reads files of any size with limited memory. It keeps the newest requests and
// bodies up to 64 KiB; larger ones are read on demand. It accepts damaged recordings and
// reports what it could not read. An [Archive] is safe for concurrent use and changes no
// more after Load.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/telemetry"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Limits of an archive.
const (
	DefaultRequests  = 20_000
	maxNotifications = 2_000
	maxBodies        = 128 << 20 // bytes of bodies up to 64 KiB
	// maxLargeBody is the largest body that is read on demand, in bytes.
	maxLargeBody = 16 << 20
	// maxServers is the number of servers that a recording may name.
	maxServers = 1_000
	// maxAdded is the number of them that the settings do not name. Each changes the names
	// of all.
	maxAdded = 200
	// maxHandshake is the largest handshake of a server, in bytes.
	maxHandshake = 256 << 10
	// maxSessions is the number of sessions that are connected at once.
	maxSessions = 10_000
	// maxRunning is the number of requests without an answer, with at most
	// maxRunningBytes of params and names.
	maxRunning      = 10_000
	maxRunningBytes = 64 << 20
	// screenTransport is the recorded transport of UIs.
	screenTransport = "screen"
	// progressLines is the number of lines between two reports of progress.
	progressLines = 256
)

// Options configures [Load].
type Options struct {
	// Requests is the number of the newest requests to keep; 0 means [DefaultRequests].
	Requests int
	// Filter selects requests and notifications, in the language of package query.
	Filter string
	// NoTraffic omits all requests and notifications.
	NoTraffic bool
	// Progress receives the bytes read so far and in total; nil ignores them.
	Progress func(read, total int64)
}

// Archive is a loaded recording.
type Archive struct {
	Registry *registry.Registry
	Name     string // base name of the file or folder
	// Start and End are the times of the first and of the last recorded event.
	Start, End time.Time
	// Requests is the number of selected requests, Kept the number in the registry.
	Requests, Kept int
	// Lost is the number of events that were not recorded.
	Lost int
	// Problems describe parts that could not be read, More counts further ones.
	Problems []recording.Problem
	More     int
	// Bodies reports whether params and answers were recorded.
	Bodies bool

	config  *config.Config
	views   *view.Views
	meter   *telemetry.Meter
	running []registry.InFlight
	details map[string]recording.Line // of the sessions that were connected at the end
	large   map[uint64]largeBodies    // by sequence number of the traffic record
}

type largeBodies struct {
	folder         string
	params, answer *recording.Body
}

// ErrFilter means that Options.Filter is wrong.
var ErrFilter = errors.New("filter")

// Load reads a recording: a file, or a folder with files. The end of ctx stops it.
func Load(ctx context.Context, path string, o Options) (*Archive, error) {
	settings, err := lastSettings(path)
	if err != nil {
		return nil, err
	}
	r, err := recording.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l := newLoader(path, r, settings, o)
	l.filter = recording.NewFilter(o.Filter, r.Body)
	l.filter.ShowNotifications()
	if p := l.filter.Problem(); p.Text != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrFilter, p.Term, p.Text)
	}
	for n := 0; ; n++ {
		if n%progressLines == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if o.Progress != nil {
				o.Progress(r.Progress())
			}
		}
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		l.file, l.line = filepath.Base(r.File()), r.Position()
		l.add(line, filepath.Join(filepath.Dir(r.File()), recording.BodyFolder))
	}
	l.finish(r)
	return l.archive, nil
}

// lastSettings returns the header of the newest file. Its settings decide the names of
// all entries.
func lastSettings(path string) (*recording.Line, error) {
	files, err := recording.Files(path)
	if err != nil {
		return nil, err
	}
	r, err := recording.Open(files[len(files)-1])
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Next()
}

// Title describes the recording in a few words, such as "last-night.jsonl, 02:06–07:31".
func (a *Archive) Title() string {
	if a.Start.IsZero() {
		return a.Name
	}
	from, to := a.Start.Local(), a.End.Local()
	end := to.Format("15:04:05")
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format("2006-01-02 15:04:05")
	}
	return fmt.Sprintf("%s, %s to %s", a.Name, from.Format("2006-01-02 15:04:05"), end)
}

// Summary reports what is missing, or returns "".
func (a *Archive) Summary() string {
	var parts []string
	if missing := a.Requests - a.Kept; missing > 0 {
		parts = append(parts, fmt.Sprintf("the newest %s of %s requests", termtext.FormatCount(a.Kept), termtext.FormatCount(a.Requests)))
	}
	if a.Lost > 0 {
		parts = append(parts, termtext.Count(a.Lost, "event")+" not recorded")
	}
	if n := len(a.Problems) + a.More; n > 0 {
		parts = append(parts, termtext.Count(n, "unreadable part"))
	}
	if !a.Bodies {
		parts = append(parts, "recorded without bodies")
	}
	text := ""
	for i, part := range parts {
		if i > 0 {
			text += "; "
		}
		text += part
	}
	return text
}

// completeBodies reads bodies that are in files of their own.
func (a *Archive) completeBodies(rec *registry.TrafficRecord) {
	of, ok := a.large[rec.Seq]
	if !ok {
		return
	}
	rec.Request = cmpBytes(of.read(of.params), rec.Request)
	rec.Response = cmpBytes(of.read(of.answer), rec.Response)
}

func (b *largeBodies) read(body *recording.Body) []byte {
	if body == nil || body.File == "" || body.Size > maxLargeBody {
		return nil
	}
	text, err := recording.ReadBody(b.folder, body)
	if err != nil {
		return nil // reported when the recording was loaded
	}
	return text
}

func cmpBytes(a, b []byte) []byte {
	if a != nil {
		return a
	}
	return b
}

func (a *Archive) log(at time.Time, level slog.Level, text string) {
	a.Registry.Logs().Append(registry.LogRecord{Time: cmp.Or(at, a.End), Level: level, Source: registry.SourceGoblin, Text: text})
}
