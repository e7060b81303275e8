package calltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/calltest"
	"goblin/registry/savedcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet answers calls of SERVER_TOOL with their params and records them.
type fleet struct {
	mu       sync.Mutex
	running  map[string]int // by server
	calls    []string
	overlaps int             // calls of a server with another one in flight
	meet     *sync.WaitGroup // if not nil, each call waits for the others
}

func (f *fleet) Find(_ context.Context, _ savedcall.Kind, name string) (calltest.Target, error) {
	server, _, _ := strings.Cut(name, "_")
	return calltest.Target{Name: name, Server: server}, nil
}

func (f *fleet) Request(ctx context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	var p struct{ Name string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	server, tool, _ := strings.Cut(p.Name, "_")
	f.change(func() {
		f.calls = append(f.calls, string(params))
		if f.running[server]++; f.running[server] > 1 {
			f.overlaps++
		}
	})
	defer f.change(func() { f.running[server]-- })
	if f.meet != nil {
		f.meet.Done()
		f.meet.Wait()
	}
	if tool == "hang" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return json.RawMessage(fmt.Sprintf(`{"content": [], "structuredContent": {"n": 1.50, "params": %s}}`, params)), nil
}

func (f *fleet) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fleet) Close() error { return nil }

func (f *fleet) runner() *calltest.Runner {
	f.running = map[string]int{}
	return &calltest.Runner{Connect: func(context.Context) (calltest.Conn, error) { return f, nil }, Find: f.Find}
}

// load writes files and loads their folder.
func load(t *testing.T, files map[string]string) []*savedcall.Call {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	calls, err := calltest.Load(dir)
	require.NoError(t, err)
	return calls
}

func run(ctx context.Context, t *testing.T, r *calltest.Runner, calls []*savedcall.Call) (results []savedcall.Result, err error) {
	t.Helper()
	err = r.Run(ctx, calls, func(one savedcall.Result) { results = append(results, one) })
	require.Len(t, results, len(calls), "each call has a result")
	return results, err
}

func TestServersGetOneCallAtATime(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("f%d/1.yaml", i)] = "call: a_x\n"
		files[fmt.Sprintf("f%d/2.yaml", i)] = "call: b_x\n"
	}
	f := &fleet{}
	results, err := run(t.Context(), t, f.runner(), load(t, files))
	require.NoError(t, err)
	require.Len(t, results, 40)
	require.Zero(t, f.overlaps)
}

func TestFoldersRunAtTheSameTime(t *testing.T) {
	f := &fleet{meet: &sync.WaitGroup{}}
	f.meet.Add(3) // three calls of different servers must be in flight together
	_, err := run(t.Context(), t, f.runner(), load(t, map[string]string{"x/1.yaml": "call: a_x\n", "y/1.yaml": "call: b_x\n", "z/1.yaml": "call: c_x\n"}))
	require.NoError(t, err)
}

func TestCapturesReachLaterFilesOfTheFolderOnly(t *testing.T) {
	f := &fleet{}
	r := f.runner()
	r.Env = func(name string) (string, bool) { return "environment", name == "n" }
	results, err := run(t.Context(), t, r, load(t, map[string]string{
		"x/1.yaml": "call: a_x\ncapture: {n: $.structuredContent.n}\n",
		"x/2.yaml": "call: a_x\narguments: {n: \"${n}\", s: \"<${n}>\"}\n",
		"y/1.yaml": "call: a_y\narguments: {n: \"${n}\"}\n",
	}))
	require.NoError(t, err)
	for _, one := range results {
		require.Equal(t, savedcall.Passed, one.State, one.Failures())
	}
	all := strings.Join(f.calls, "\n")
	require.Contains(t, all, `"n":1.50,"s":"<1.50>"`, "a capture keeps its JSON type")
	require.Contains(t, all, `{"name":"a_y","arguments":{"n":"environment"}}`)
}

func TestFailedCaptureSkipsItsUsers(t *testing.T) {
	f := &fleet{}
	calls := load(t, map[string]string{
		"1.yaml": "call: a_x\ncapture: {id: $.none, n: $.structuredContent.n}\n",
		"2.yaml": "call: a_x\narguments: {id: \"${id:-default}\"}\ncapture: {late: $.x}\n",
		"3.yaml": "call: a_x\narguments: {late: \"${late}\"}\n",
		"4.yaml": "call: a_x\narguments: {n: \"${n}\"}\n",
	})
	results, err := run(t.Context(), t, f.runner(), calls)
	require.NoError(t, err)
	var states []savedcall.State
	for _, one := range results {
		states = append(states, one.State)
	}
	require.Equal(t, []savedcall.State{savedcall.Failed, savedcall.Skipped, savedcall.Skipped, savedcall.Passed}, states)
	require.Contains(t, results[1].Problem, "${id} was not captured because "+calls[0].Path+" failed")
	require.Contains(t, results[2].Problem, "${late} was not captured because "+calls[1].Path+" failed")
}

func TestCancelledRunSkipsTheRest(t *testing.T) {
	f := &fleet{}
	ctx, cancel := context.WithCancel(t.Context())
	r := f.runner()
	r.Connect = func(context.Context) (calltest.Conn, error) {
		cancel() // while the first call is in flight
		return f, nil
	}
	results, err := run(ctx, t, r, load(t, map[string]string{"1.yaml": "call: a_hang\n", "2.yaml": "call: a_x\n"}))
	require.ErrorIs(t, err, context.Canceled)
	for _, one := range results {
		require.Equal(t, savedcall.Skipped, one.State)
	}
}

func TestLostSessionFailsOnlyItsCall(t *testing.T) {
	f := &fleet{}
	r := f.runner()
	opened := 0
	r.Connect = func(context.Context) (calltest.Conn, error) {
		if opened++; opened == 1 {
			return lost{}, nil
		}
		return f, nil
	}
	results, err := run(t.Context(), t, r, load(t, map[string]string{"1.yaml": "call: a_x\n", "2.yaml": "call: a_x\n"}))
	require.NoError(t, err)
	require.True(t, results[0].Unreachable)
	require.Equal(t, savedcall.Passed, results[1].State)
}

func TestACallWithoutAnAnswerHasItsTime(t *testing.T) {
	f := &fleet{}
	r := f.runner()
	r.Timeout = 20 * time.Millisecond
	results, err := run(t.Context(), t, r, load(t, map[string]string{"1.yaml": "call: a_hang\n"}))
	require.NoError(t, err)
	require.Equal(t, "no answer within 20 ms", results[0].Problem)
	require.GreaterOrEqual(t, results[0].Answer.Time, r.Timeout)
}

type lost struct{}

func (lost) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, &calltest.UnreachableError{Err: errors.New("lost")}
}

func (lost) Close() error { return nil }

func TestAnnotationsContainNoControlCharacters(t *testing.T) {
	t.Parallel()
	call := &savedcall.Call{Path: "a\x1b[2J\n::error::.yaml", Name: "x\x1b[31m", Line: 1}
	text := new(calltest.Report).Annotations(&savedcall.Result{Call: call, State: savedcall.Failed, Problem: "no\x1b answer"})
	require.NotContains(t, text, "\x1b")
	require.Equal(t, 1, strings.Count(text, "\n"), text)
}

func TestLinksOutOfTheFolderAreNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "private.yaml"), []byte("of-another-program"), 0o600))
	saved := filepath.Join(dir, "saved")
	require.NoError(t, os.Mkdir(saved, 0o700))
	require.NoError(t, os.Symlink("../private.yaml", filepath.Join(saved, "1.yaml")))
	_, err := calltest.Load(saved)
	require.ErrorContains(t, err, "1.yaml: is a link out of its folder")
	require.NotContains(t, err.Error(), "of-another-program")

	require.NoError(t, os.Remove(filepath.Join(saved, "1.yaml")))
	require.NoError(t, os.WriteFile(filepath.Join(saved, "2.yaml"), []byte("call: x\n"), 0o600))
	require.NoError(t, os.Symlink("2.yaml", filepath.Join(saved, "1.yaml")))
	calls, err := calltest.Load(saved)
	require.NoError(t, err)
	require.Len(t, calls, 2)
}
