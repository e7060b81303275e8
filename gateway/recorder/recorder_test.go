package recorder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/recorder"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/recording"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cr3t-value-of-the-config"

// bed is a recorder with its surroundings.
type bed struct {
	t        *testing.T
	folder   string
	registry *registry.Registry
	mask     *config.Mask
	recorder *recorder.Recorder
	recorded recorder.Status // after close
	failed   chan error

	mu       sync.Mutex
	sink     telemetry.Sink
	inFlight []registry.InFlight
}

func start(t *testing.T, folder string, change func(*recorder.Options)) *bed {
	t.Helper()
	b := newBed(t, folder)
	require.NoError(t, b.start(change))
	return b
}

func newBed(t *testing.T, folder string) *bed {
	cfg := &config.Config{Servers: []config.Server{{Name: "files", Env: map[string]string{"API_KEY": secret}}}}
	return &bed{
		t: t, folder: folder, registry: registry.New(registry.Options{Servers: []string{"files"}, MaxName: 51, PageSize: 100, MaxEntries: 1000}),
		mask: config.NewMask(cfg), failed: make(chan error, 1),
	}
}

func (b *bed) start(change func(*recorder.Options)) error {
	err := b.open(change)
	if err == nil {
		b.t.Cleanup(b.close)
	}
	return err
}

func (b *bed) open(change func(*recorder.Options)) (err error) {
	o := recorder.Options{
		Folder: b.folder, Max: 256 << 20, Age: time.Hour, Bodies: true, Version: "1.2.3", Config: "goblin.yaml",
		Settings: json.RawMessage(`{"gateway":{}}`), Registry: b.registry, Mask: b.mask, Logger: slog.New(slog.DiscardHandler),
		AddSink: func(s telemetry.Sink) func() {
			b.setSink(s)
			return func() { b.setSink(nil) }
		},
		InFlight: func() []registry.InFlight {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.inFlight
		},
		OnStop: func(err error) { b.failed <- err },
	}
	if change != nil {
		change(&o)
	}
	b.recorder, err = recorder.Start(o)
	return err
}

func (b *bed) setSink(s telemetry.Sink) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sink = s
}

func (b *bed) close() {
	if b.recorder != nil {
		require.NoError(b.t, b.recorder.Close())
		b.recorded = b.recorder.Status()
		b.recorder = nil
	}
}

// record does the same as the journal of package telemetry.
func (b *bed) record(rec registry.TrafficRecord, full telemetry.Bodies) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sink == nil {
		return
	}
	rec.Request, rec.RequestSize = b.mask.Head(full.Request, 64<<10), len(full.Request)
	rec.Response, rec.ResponseSize = b.mask.Head(full.Response, 64<<10), len(full.Response)
	b.sink.Record(&rec, full)
}

func call(n uint64, params, answer string) (registry.TrafficRecord, telemetry.Bodies) {
	return registry.TrafficRecord{
		Time: time.Now(), Number: n, Session: "s1", Client: "tester", Server: "files", Method: "tools/call", Name: "files_read",
		Original: "read", Duration: 1234567 * time.Nanosecond, Status: "success",
	}, telemetry.Bodies{Request: []byte(params), Response: []byte(answer), Answered: true}
}

// read returns all lines of the folder.
func read(t *testing.T, folder string) (lines []*recording.Line, body func(*recording.Body) string) {
	t.Helper()
	r, err := recording.Open(folder)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			problems, _ := r.Problems()
			require.Empty(t, problems)
			return lines, func(b *recording.Body) string {
				text, err := r.Body(b)
				require.NoError(t, err)
				return string(text)
			}
		}
		require.NoError(t, err)
		lines = append(lines, l)
	}
}

func only(lines []*recording.Line, kind recording.Type) (found []*recording.Line) {
	for _, l := range lines {
		if l.Type == kind {
			found = append(found, l)
		}
	}
	return found
}

func TestARecordingContainsTheWholeRequest(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	rec, full := call(7, `{"name":"files_read","arguments":{"a":"<b>\u0000 é"}}`, `{"content":[{"type":"text","text":"hi"}]}`)
	rec.Parent, rec.Profile, rec.UserWait, rec.StartWait, rec.QueueWait, rec.UserAsked = 3, "coding", time.Millisecond, 2*time.Microsecond, time.Nanosecond, true
	rec.Wire = []byte("i7\ntstdio\n")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	rec.Events = []registry.RuleEvent{{Time: at, Rule: 2, Text: "stopped"}, {Time: at, Rule: 2, Text: `changed "<é>"`}}
	full.Sent, full.Answer = []byte(`{"name":"read"}`), []byte("{\"content\":\n[]}")
	b.record(rec, full)
	failed, bodies := call(8, "", `{"code":-32603,"message":"no"}`)
	failed.Status, failed.Code, failed.Direction, bodies.Answered = "failure", -32603, registry.ToClient, false
	b.record(failed, bodies)
	b.record(registry.TrafficRecord{Time: time.Now(), Server: "files", Method: "notifications/progress", Status: registry.StatusNotification, Receivers: 2}, telemetry.Bodies{Request: []byte(`{"progress":1}`)})
	b.close()

	lines, body := read(t, b.folder)
	require.Equal(t, recording.TypeRecording, lines[0].Type)
	require.Equal(t, "1.2.3", lines[0].Goblin)
	require.Equal(t, "goblin.yaml", lines[0].Config)
	require.True(t, lines[0].Bodies)
	require.JSONEq(t, `{"gateway":{}}`, string(lines[0].Settings))
	require.Equal(t, recording.TypeEnd, lines[len(lines)-1].Type)
	requests := only(lines, recording.TypeRequest)
	require.Len(t, requests, 2)
	for i, want := range []*registry.TrafficRecord{&rec, &failed} {
		expected := recording.NewLine(want)
		is := *requests[i]
		require.True(t, expected.Time.Equal(is.Time))
		expected.Time, expected.RequestSize, expected.ResponseSize = is.Time, is.RequestSize, is.ResponseSize
		expected.Answered = i == 0
		is.Params, is.Answer, is.Sent, is.Own = nil, nil, nil, nil
		require.Equal(t, expected, is)
	}
	require.Equal(t, string(full.Request), body(requests[0].Params))
	require.Equal(t, string(full.Response), body(requests[0].Answer))
	require.Equal(t, `{"name":"read"}`, body(requests[0].Sent))
	require.JSONEq(t, `{"content":[]}`, body(requests[0].Own))
	require.Nil(t, requests[1].Params)
	note := only(lines, recording.TypeNotification)
	require.Len(t, note, 1)
	require.Equal(t, 2, note[0].Receivers)
}

func TestLargeBodiesAreInFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	large := `{"text":"` + strings.Repeat("x", 100<<10) + `"}`
	for n := range uint64(3) {
		b.record(call(n+1, `{}`, large))
	}
	b.record(call(9, `{}`, `{"text":"`+strings.Repeat("y", 40<<20)+`"}`))
	b.close()
	lines, body := read(t, b.folder)
	requests := only(lines, recording.TypeRequest)
	require.Len(t, requests, 4)
	require.Equal(t, large, body(requests[2].Answer))
	require.Equal(t, requests[0].Answer.File, requests[2].Answer.File)
	require.InDelta(t, size(t, b.folder), b.recorded.Bytes, 100, "status has the size")
	require.Equal(t, 1, count(t, filepath.Join(b.folder, recording.BodyFolder)), "equal bodies share a file")
	require.Equal(t, &recording.Body{File: recording.Omitted, Size: 40<<20 + len(`{"text":""}`)}, requests[3].Answer)
	_, err := recording.ReadBody(b.folder, requests[3].Answer)
	require.ErrorIs(t, err, recording.ErrBodyOmitted)
	require.Greater(t, requests[3].ResponseSize, 40<<20)
}

func TestSecretsAreInNoFile(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	b.mask.AddSecrets("12345678")
	text := `{"token":"` + secret + `"}`
	for n, padding := range []string{"", strings.Repeat("x", 20<<10), strings.Repeat("x", 100<<10)} {
		rec, full := call(uint64(n+1), text, `{"p":"`+padding+`","token":"`+secret+`"}`)
		full.Sent, full.Answer = full.Response, full.Response
		b.record(rec, full)
	}
	b.record(call(4, `{"pin":12345678}`, `{}`))
	b.registry.SetList("files", registry.Tool, [][]byte{[]byte(`{"name":"read","description":"Uses ` + secret + `","inputSchema":{"type":"object"}}`)})
	b.registry.SetState("files", registry.ServerState{State: registry.StateReady, ServerName: "f", Instructions: "key " + secret, LastError: "bad " + secret})
	uri := "file:///" + secret
	b.registry.SetList("files", registry.Resource, nil)
	b.registry.SetList("files", registry.Resource, [][]byte{[]byte(`{"name":"r","uri":"` + uri + `"}`)})
	b.record(call(5, `{}`, `{}`))
	b.registry.SetList("files", registry.Resource, nil)
	b.close()
	lines, body := read(t, b.folder)
	requests := only(lines, recording.TypeRequest)
	require.Regexp(t, `^\{"token":"\[hidden:[0-9a-f]{8}\]"\}$`, body(requests[0].Params))
	require.True(t, recording.MatchesHidden(body(requests[0].Params), text))
	require.True(t, json.Valid([]byte(body(requests[3].Params))))
	first := body(requests[0].Params)
	lists := only(lines, recording.TypeList)
	changes := lists[len(lists)-1].Changes
	require.Len(t, changes, 1)
	require.Equal(t, registry.OpRemoved, changes[0].Op)
	require.True(t, recording.MatchesHidden(changes[0].Name, uri))
	eachFile(t, b.folder, func(path string, content string) {
		require.NotContains(t, content, secret, path)
		require.NotContains(t, content, "12345678", path)
	})

	again := start(t, b.folder, nil) // another process, same key
	again.record(call(1, text, `{}`))
	again.close()
	lines, body = read(t, b.folder)
	requests = only(lines, recording.TypeRequest)
	require.Equal(t, first, body(requests[len(requests)-1].Params))
}

func TestWithoutBodiesOnlyTheirSizesAreRecorded(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), func(o *recorder.Options) { o.Bodies = false })
	rec, full := call(1, `{"private":1}`, `{"private":"`+strings.Repeat("x", 100<<10)+`"}`)
	full.Sent, full.Answer = full.Request, full.Response
	rec.Events = []registry.RuleEvent{{Rule: 1, Text: "changed and sent"}, {Rule: 1, Text: "a: 1 → private", Quotes: true}}
	b.record(rec, full)
	b.close()
	lines, _ := read(t, b.folder)
	require.False(t, lines[0].Bodies)
	r := only(lines, recording.TypeRequest)[0]
	require.Len(t, r.Rules, 1)
	require.Equal(t, 13, r.RequestSize)
	require.Nil(t, r.Params)
	eachFile(t, b.folder, func(path, content string) { require.NotContains(t, content, "private", path) })
}

func TestServersListsAndSessionsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBed(t, filepath.Join(t.TempDir(), "rec"))
	tool := func(name, text string) []byte {
		return []byte(fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, text))
	}
	b.registry.SetState("files", registry.ServerState{State: registry.StateReady, Listed: true, Transport: "stdio", ServerName: "f", ServerVersion: "1", ProtocolVersion: "2025-11-25", Capabilities: []byte(`{"tools":{}}`)})
	b.registry.SetList("files", registry.Tool, [][]byte{tool("one", "a <b>"), tool("two", "b")})
	b.registry.SetSession(registry.Session{ID: "s1", Transport: "stdio", Client: "tester", Version: "9", Protocol: "2025-11-25"})
	require.NoError(t, b.start(func(o *recorder.Options) { o.Profile = func(string) string { return "coding" } }))
	b.registry.SetList("files", registry.Tool, [][]byte{tool("one", "changed"), tool("three", "c")})
	b.registry.SetState("files", registry.ServerState{State: registry.StateFailed, LastError: "exit status 1"})
	b.registry.DropSession("s1")
	b.close()

	lines, _ := read(t, b.folder)
	server := only(lines, recording.TypeServer)
	require.Len(t, server, 1)
	require.JSONEq(t, `{"serverInfo":{"name":"f","version":"1"},"capabilities":{"tools":{}},"protocolVersion":"2025-11-25"}`, string(server[0].Handshake))
	require.Len(t, server[0].Lists["tools"], 2)
	require.Equal(t, string(tool("one", "a <b>")), string(server[0].Lists["tools"][0]))
	lists := only(lines, recording.TypeList)
	var changes []recording.Change // a line may precede the meaning of its definitions
	for _, l := range lists {
		changes = append(changes, l.Changes...)
	}
	require.Equal(t, []recording.Change{{Name: "one", Op: "changed", What: changes[0].What}, {Name: "three", Op: "added"}, {Name: "two", Op: "removed"}}, changes)
	require.Contains(t, strings.Join(changes[0].What, "\n"), "description")
	require.Equal(t, []string{"two"}, lists[0].Removed)
	require.Len(t, lists[0].Added, 2)
	states := only(lines, recording.TypeState)
	require.Equal(t, "exit status 1", states[len(states)-1].Error)
	client := only(lines, recording.TypeClient)
	require.Len(t, client, 1)
	require.Equal(t, "coding", client[0].Profile)
	require.Equal(t, "9", client[0].ClientVersion)
	require.Len(t, only(lines, recording.TypeClosed), 1)
}

func TestTheFirstListsAreNoChange(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	b.registry.SetState("files", registry.ServerState{State: registry.StateSleeping, Listed: true, ServerName: "f"})
	b.record(call(1, `{}`, `{}`))
	b.registry.SetFirstList("files", registry.Tool, [][]byte{[]byte(`{"name":"cached","inputSchema":{"type":"object"}}`)})
	b.close()
	lines, _ := read(t, b.folder)
	for _, l := range lines {
		require.Empty(t, l.Changes)
	}
}

func TestLinesAboutServersAndSessionsPrecedeWhatDependsOnThem(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	list := func(name string) {
		b.registry.SetList("files", registry.Tool, [][]byte{[]byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`)})
	}
	b.record(call(1, `{}`, `{}`))
	b.registry.SetSession(registry.Session{ID: "s1", Client: "tester"})
	b.registry.SetState("files", registry.ServerState{State: registry.StateReady, Listed: true, ServerName: "f"})
	b.record(call(2, `{}`, `{}`))
	list("one")
	b.record(call(3, `{}`, `{}`))
	b.registry.SetState("files", registry.ServerState{State: registry.StateStopped})
	b.registry.DropSession("s1")
	b.close()

	lines, _ := read(t, b.folder)
	var order []string
	for _, l := range lines {
		switch {
		case l.Type == recording.TypeRequest:
			order = append(order, fmt.Sprintf("request %d", l.Number))
		case l.Handshake != nil || l.Type == recording.TypeClient: // in any order
			order = append(order, "start")
		case l.Type == recording.TypeList || l.Type == recording.TypeClosed:
			order = append(order, string(l.Type))
		}
	}
	require.Equal(t, []string{"request 1", "start", "request 2", "list", "request 3", "closed"}, slices.Compact(order))
}

func TestASlowRequestIsRecordedBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, filepath.Join(t.TempDir(), "rec"))
	hanging := registry.TrafficRecord{Number: 5, Time: time.Now().Add(-time.Minute), Method: "tools/call", Status: registry.StatusInFlight, Request: []byte(`{"a":1}`), RequestSize: 7}
	fresh := hanging
	fresh.Number, fresh.Time = 6, time.Now().Add(time.Hour)
	b.inFlight = []registry.InFlight{{TrafficRecord: hanging}, {TrafficRecord: fresh}}
	require.NoError(t, b.start(nil))
	b.close()
	lines, body := read(t, b.folder)
	running := only(lines, recording.TypeRunning)
	require.Len(t, running, 1)
	require.EqualValues(t, 5, running[0].Number)
	require.Equal(t, `{"a":1}`, body(running[0].Params))
}

func TestOtherSettingsBeginAnotherFile(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	b.recorder.SetSettings(json.RawMessage(`{"gateway":{}}`))
	b.recorder.SetSettings(json.RawMessage(`{"gateway":{"max_name":40}}`))
	require.Eventually(t, func() bool {
		files, err := recording.Files(b.folder)
		return err == nil && len(files) > 1
	}, 10*time.Second, 10*time.Millisecond)
	b.close()
	lines, _ := read(t, b.folder)
	heads := only(lines, recording.TypeRecording)
	require.Len(t, heads, 2)
	require.JSONEq(t, `{"gateway":{"max_name":40}}`, string(heads[1].Settings))
	require.Len(t, only(lines, recording.TypeEnd), 2)
	require.Len(t, only(lines, recording.TypeServer), 2, "each file describes the servers")
}

func TestTheFolderKeepsItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	b := start(t, filepath.Join(t.TempDir(), "rec"), func(o *recorder.Options) { o.Max = limit })
	for n := range uint64(300) {
		b.record(call(n+1, `{}`, `{"text":"`+random(n, 8<<10)+`"}`))
		if n%10 == 0 {
			b.record(call(n+1000, `{}`, `{"text":"`+random(n+1000, 100<<10)+`"}`))
		}
	}
	b.close()
	b = start(t, b.folder, func(o *recorder.Options) { o.Max = limit })
	require.Eventually(t, func() bool { return size(t, b.folder) <= limit && b.recorder.Status().Bytes <= limit }, 5*time.Second, 10*time.Millisecond, "%s", b.folder)
	b.close()
	lines, body := read(t, b.folder)
	requests := only(lines, recording.TypeRequest)
	require.NotEmpty(t, requests)
	require.Greater(t, requests[0].Number, uint64(1), "the oldest are removed")
	for _, r := range requests {
		body(r.Answer) // no remaining file lost a body
	}
}

func TestOldFilesAreRemoved(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "rec")
	b := start(t, folder, nil)
	b.record(call(1, `{}`, `{"old":"`+strings.Repeat("x", 100<<10)+`"}`))
	b.close()
	age(t, folder, 2*time.Hour)
	b = start(t, folder, nil)
	require.Eventually(t, func() bool {
		return count(t, filepath.Join(folder, recording.BodyFolder)) == 0
	}, 10*time.Second, 10*time.Millisecond)
	b.close()
	lines, _ := read(t, folder)
	require.Empty(t, only(lines, recording.TypeRequest))
}

func TestDeleteRemovesOldRecordings(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "rec")
	b := start(t, folder, nil)
	b.record(call(1, `{}`, `{"old":"`+strings.Repeat("x", 100<<10)+`"}`))
	b.close()
	age(t, folder, 48*time.Hour)
	gone, err := recorder.Delete(folder, 72*time.Hour)
	require.NoError(t, err)
	require.Zero(t, gone)
	b = start(t, folder, func(o *recorder.Options) { o.Age = 1000 * time.Hour })
	b.record(call(2, `{}`, `{"new":"`+strings.Repeat("x", 100<<10)+`"}`))
	gone, err = recorder.Delete(folder, 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, gone.Files)
	gone, err = recorder.Delete(folder, 0)
	require.NoError(t, err)
	require.Zero(t, gone.Files, "the running recording remains")
	b.close()
	lines, body := read(t, folder)
	requests := only(lines, recording.TypeRequest)
	require.Len(t, requests, 1)
	require.Contains(t, body(requests[0].Answer), "new")
	strange := filepath.Join(folder, "bodies", "ab", "abstract.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(strange), 0o700))
	require.NoError(t, os.WriteFile(strange, nil, 0o600))
	gone, err = recorder.Delete(folder, 0)
	require.NoError(t, err)
	require.FileExists(t, strange, "the file of another program")
	require.Equal(t, 1, gone.Files)
	require.Equal(t, 1, gone.Bodies)
	require.Positive(t, gone.Bytes)

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "notes.jsonl"), []byte("{}\n"), 0o600))
	_, err = recorder.Delete(other, 0)
	require.ErrorContains(t, err, "contains no recordings")
	require.FileExists(t, filepath.Join(other, "notes.jsonl"))
}

func TestTheRecordingOfAKilledProcessIsCompressedAsItIs(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "rec")
	b := start(t, folder, nil)
	b.record(call(1, `{}`, `{}`))
	b.close()
	files, err := recording.Files(folder)
	require.NoError(t, err)
	require.Len(t, files, 1)
	cut := filepath.Join(folder, "20200102T030405.000Z.jsonl")
	text := `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1}` + "\n" + `{"type":"request","n":77}` + "\n" + `{"type":"req`
	require.NoError(t, os.WriteFile(cut, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(cut+".gz.part", []byte("rest"), 0o600))
	b = start(t, folder, nil)
	require.Eventually(t, func() bool {
		_, err := os.Stat(cut + ".gz")
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	b.close()
	require.NoFileExists(t, cut)
	require.NoFileExists(t, cut+".gz.part")
	r, err := recording.Open(cut + ".gz")
	require.NoError(t, err)
	defer r.Close()
	var last *recording.Line
	for {
		l, err := r.Next()
		if err != nil {
			break
		}
		last = l
	}
	require.EqualValues(t, 77, last.Number)
}

func TestTheFolderOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, filepath.Join(t.TempDir(), "home"))
	require.NoError(t, os.Mkdir(b.folder, 0o700))
	strange := filepath.Join(b.folder, ".pid")
	require.NoError(t, os.WriteFile(strange, []byte("keep"), 0o600))
	require.ErrorContains(t, b.start(nil), "contains other files; choose an empty folder")
	text, err := os.ReadFile(strange)
	require.NoError(t, err)
	require.Equal(t, "keep", string(text))
}

func TestAFolderHasOneWriter(t *testing.T) {
	t.Parallel()
	b := start(t, filepath.Join(t.TempDir(), "rec"), nil)
	err := newBed(t, b.folder).start(nil)
	require.ErrorContains(t, err, "this process records into it")
	b.close()
	require.NoError(t, newBed(t, b.folder).start(nil))
}

func TestOnlyAPrivateFolderIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(open, "file"), nil, 0o644))
	require.ErrorContains(t, newBed(t, open).start(nil), "chmod 700")
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	require.ErrorContains(t, newBed(t, filepath.Join(dir, "link")+"/").start(nil), "symbolic link")
	require.ErrorContains(t, newBed(t, filepath.Join(open, "file")).start(nil), "not a folder")

	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	for _, folder := range []string{empty, filepath.Join(dir, "a", "b")} {
		b := start(t, folder, nil)
		b.record(call(1, `{}`, `{"x":"`+strings.Repeat("x", 100<<10)+`"}`))
		b.close()
		require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, path)
			return nil
		}))
	}
}

func TestMoreThanTheQueueHoldsIsCounted(t *testing.T) {
	t.Parallel()
	b := newBed(t, filepath.Join(t.TempDir(), "rec"))
	release, held := make(chan struct{}), make(chan struct{}, 1)
	require.NoError(t, b.start(func(o *recorder.Options) {
		o.InFlight = func() []registry.InFlight { // holds the writer
			select {
			case held <- struct{}{}:
			default:
			}
			<-release
			return nil
		}
	}))
	<-held
	large := `{"text":"` + strings.Repeat("x", 60<<10) + `"}`
	const sent = 1000
	for n := range uint64(sent) {
		b.record(call(n+1, `{}`, large))
	}
	close(release)
	b.close()
	lines, _ := read(t, b.folder)
	dropped := only(lines, recording.TypeDropped)
	require.Len(t, dropped, 1)
	require.Contains(t, dropped[0].Error, "full")
	require.Equal(t, sent, dropped[0].Count+len(only(lines, recording.TypeRequest)))
}

func count(t *testing.T, folder string) (n int) {
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	require.NoError(t, err)
	return n
}

func size(t *testing.T, folder string) (n int64) {
	require.NoError(t, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	}))
	return n
}

// age makes all files older.
func age(t *testing.T, folder string, by time.Duration) {
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			return nil
		}
		past := time.Now().Add(-by)
		if strings.HasSuffix(path, recording.CompressedSuffix) {
			older := filepath.Join(folder, past.UTC().Format("20060102T150405.000Z")+recording.CompressedSuffix)
			require.NoError(t, os.Rename(path, older))
			path = older
		}
		return os.Chtimes(path, past, past)
	}))
}

// random returns letters that do not compress well.
func random(seed uint64, n int) string {
	out := make([]byte, n)
	for i := range out {
		seed = seed*6364136223846793005 + 1442695040888963407
		out[i] = 'a' + byte(seed>>59)%26
	}
	return string(out)
}
