package tasks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/call"
	"goblin/registry/rawjson"
)

func TestMessagesNameTheirTask(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct{ mapped, without string }{
		`{"a":1e400}`: {`{"a":1e400}`, `{"a":1e400}`},
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1","x":1}},"a":1}`: {
			`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own","x":1}},"a":1}`, `{"a":1}`,
		},
		`{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"t\u002d1"},"k":1.0}}`: {
			`{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"own"},"k":1.0}}`, `{"_meta":{"k":1.0}}`,
		},
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-2"}}}`: {
			`{}`, `{}`, // another's task
		},
		`{"_meta":{"io.modelcontextprotocol/related-task":7}}`: {
			`{"_meta":{"io.modelcontextprotocol/related-task":7}}`, `{"_meta":{"io.modelcontextprotocol/related-task":7}}`,
		},
		`{"text":"related-task"}`: {`{"text":"related-task"}`, `{"text":"related-task"}`},
	} {
		require.Equal(t, want.mapped, string(call.Relate([]byte(in), "t-1", "own")), in)
		require.Equal(t, want.without, string(call.Unrelated([]byte(in))), in)
	}
}

func FuzzTaskNames(f *testing.F) {
	f.Add([]byte(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"taskId":"t","ttl":1e400,"task":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if rawjson.Valid(in) != nil || !rawjson.IsObject(in) {
			return
		}
		for _, out := range [][]byte{call.Relate(in, "t", "own"), call.Unrelated(in), rename(in, "own"), rawjson.Without(in, "task")} {
			require.NoError(t, rawjson.Valid(out), "%s", out)
		}
	})
}

func TestPollIntervalsAreBounded(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]time.Duration{
		`{}`:                      defaultPoll,
		`{"pollInterval":null}`:   defaultPoll,
		`{"pollInterval":"1"}`:    defaultPoll,
		`{"pollInterval":1500}`:   1500 * time.Millisecond,
		`{"pollInterval":2.5e3}`:  2500 * time.Millisecond,
		`{"pollInterval":0}`:      minPoll,
		`{"pollInterval":-1e300}`: minPoll,
		`{"pollInterval":1e300}`:  maxPoll,
		`{"pollInterval":1e400}`:  defaultPoll,
	} {
		require.Equal(t, want, pollInterval([]byte(state)), state)
	}
}

func TestTasksExpireAfterTheirTimeToLive(t *testing.T) {
	t.Parallel()
	all := New(Options{})
	for state, want := range map[string]time.Duration{
		`{"ttl":60000}`: time.Minute, `{"ttl":0}`: 0, `{"ttl":null}`: maxTaskLife, `{}`: maxTaskLife,
		`{"ttl":-5}`: maxTaskLife, `{"ttl":1e400}`: maxTaskLife, `{"ttl":99999999999}`: maxTaskLife,
	} {
		own := &Task{Original: state}
		require.True(t, all.keep(own, []byte(state)))
		require.InDelta(t, (want + taskGrace).Seconds(), all.left(own).Seconds(), 60, state)
	}
}

func TestATaskThatNobodyFetchesKeepsItsServerBusyAsLongAsItLives(t *testing.T) {
	s := New(Options{})
	own := &Task{}
	require.True(t, s.keep(own, []byte(`{"taskId":"1","status":"completed","ttl":0}`)))
	require.True(t, s.busy(nil))
	own.expires = time.Now().Add(-time.Hour)
	require.False(t, s.busy(nil))
}
