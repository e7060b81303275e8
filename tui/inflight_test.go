package tui

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// addHangingCall adds the call of a client that has been in flight for four seconds.
func addHangingCall(r *testUI) registry.InFlight {
	u := registry.InFlight{ID: "7", TrafficRecord: registry.TrafficRecord{
		Time: r.clock.now().Add(-4 * time.Second), Session: "s-1", Client: "claude", Server: "github",
		Method: "tools/call", Name: "github_create_issue", Status: registry.StatusInFlight,
		Request: []byte(`{"name":"github_create_issue","arguments":{"title":"slow"}}`), RequestSize: 60,
	}}
	r.backend.underWay = []registry.InFlight{u}
	return u
}

// pollInFlight lets the UI ask for the requests in flight.
func (r *testUI) pollInFlight() *testUI {
	r.run(r.app.Logs().ReadInFlight())
	return r
}

func TestARequestUnderWayStandsInTrafficFromItsStart(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	u := addHangingCall(r)
	r.pollInFlight()
	require.Contains(t, r.line("goblin  work.yaml"), "in flight 1")
	require.Contains(t, r.line("11:59:56 "), " running ")
	require.Regexp(t, `11:59:56 .*claude.*tools/call.*github.*running.*4 s.*title=slow`, r.line("11:59:56 claude"))
	r.keys("/ status:running enter")
	require.Contains(t, r.screen(), "1 of 5")
	r.keys("l ] esc")
	require.Contains(t, r.screen(), `"title": "slow"`)
	r.keys("y")
	require.Contains(t, r.screen(), "the request is still running")

	// The call finishes: it is in the journal now, still in the same place under the
	// cursor.
	r.keys("esc").keys("g")
	u.Status, u.Duration = "success", 4500*time.Millisecond
	r.reg.Traffic().Append(u.TrafficRecord)
	r.refresh(registry.Traffic)
	require.Regexp(t, "> 11:59:56.* 4.5 s .*│", r.screen())
	require.NotContains(t, r.screen(), " 4 s")
	r.pollInFlight() // a late answer to an earlier poll
	r.backend.underWay = nil
	r.pollInFlight()
	require.Regexp(t, "> 11:59:56.* 4.5 s .*│", r.screen())
	require.NotContains(t, r.line("goblin  work.yaml"), "running")
}

// endCall finishes a call in flight and records it in the journal.
func (r *testUI) endCall(u registry.InFlight) *testUI {
	u.Status, u.Duration = "success", 4500*time.Millisecond
	r.reg.Traffic().Append(u.TrafficRecord)
	r.backend.underWay = nil
	return r.refresh(registry.Traffic)
}

func TestARequestThatEndsOutOfSightStandsInTrafficOnce(t *testing.T) {
	t.Parallel()
	began := regexp.MustCompile("│[> ] 11:59:56")
	for what, there := range map[string][2]string{"another pane": {"4", "5"}, "another tab": {"[", "]"}, "paused": {"G p", "p"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newTrafficUI(t, 160, 40)
			u := addHangingCall(r)
			r.pollInFlight().keys("g")
			require.Contains(t, r.line("11:59:56 "), "> 11:59:56")
			r.keys(there[0]).pollInFlight().endCall(u).pollInFlight().pollInFlight().keys(there[1])
			require.NotContains(t, r.screen(), "running")
			require.Len(t, began.FindAllString(r.screen(), -1), 1, "only once")
			if what != "paused" { // the cursor left it
				require.Regexp(t, "> 11:59:56.* 4.5 s .*│", r.screen(), "under the cursor")
			}
			r.pollInFlight()
			require.Len(t, began.FindAllString(r.screen(), -1), 1, "and must stay there")
		})
	}
}

func TestARequestThatEndsWithoutARecordLeavesTraffic(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	addHangingCall(r)
	r.pollInFlight().keys("4")
	r.backend.underWay = nil
	r.pollInFlight().pollInFlight().pollInFlight().pollInFlight().keys("5")
	require.NotContains(t, r.screen(), "running")
	require.NotContains(t, r.screen(), " 11:59:56")
	addHangingCall(r)
	r.pollInFlight()
	require.Contains(t, r.screen(), "running")
	r.backend.underWay = nil
	r.pollInFlight().pollInFlight().pollInFlight().pollInFlight()
	require.NotContains(t, r.screen(), "running", "removed while visible, too")
}

func TestTheCursorStaysOnARequestThatIsCancelled(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	u := addHangingCall(r)
	other := u
	other.ID, other.Session, other.Client, other.Time = "8", "s-2", "vscode", u.Time.Add(time.Second)
	r.backend.underWay = append(r.backend.underWay, other)
	r.pollInFlight().keys("g")
	require.Contains(t, r.line("> "), "claude")
	r.backend.underWay = r.backend.underWay[1:] // the gateway learns it before the journal
	r.keys("X y").pollInFlight()
	require.Contains(t, r.line("> "), "claude")
	u.Status, u.Duration = registry.StatusCancelled, 4*time.Second
	r.reg.Traffic().Append(u.TrafficRecord)
	r.refresh(registry.Traffic)
	require.Regexp(t, "> 11:59:56 .*cancel", r.line("> "))
	require.Contains(t, r.screen(), "cancelled  4.0 s", "its detail stays, too")
	require.Contains(t, r.line("11:59:57"), "running")
}

func TestAnybodysRequestIsCancelledAfterAsking(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	u := addHangingCall(r)
	r.pollInFlight().keys("g X")
	require.Contains(t, r.screen(), "Cancel tools/call github_create_issue?")
	require.Contains(t, r.screen(), "claude has waited 4 s")
	require.Empty(t, r.backend.acts)
	r.keys("y")
	require.Equal(t, []string{"withdraw s-1 7"}, r.backend.acts)
	require.Contains(t, r.screen(), "Cancelled tools/call github_create_issue")
	u.Session = "me"
	r.backend.underWay = []registry.InFlight{u}
	r.pollInFlight().keys("g X")
	require.Equal(t, []string{"withdraw s-1 7", "withdraw me 7"}, r.backend.acts, "no confirmation for the user's own call")
	require.Contains(t, r.screen(), "  you  →  github  tools/call")
	r.backend.fails = fmt.Errorf("gone")
	r.keys("X")
	require.Contains(t, r.screen(), "has already finished")
}

func TestTheCancelKeyOfTrafficIsAboutItsRows(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	addHangingCall(r)
	r.pollInFlight().keys("G k X")
	require.Contains(t, r.screen(), "a notification cannot be cancelled")
	r.keys("k X")
	require.Contains(t, r.screen(), "this request has already finished")
	require.NotContains(t, r.screen(), "X cancel")
	r.keys("g space X") // the cursor is on a finished call
	require.Contains(t, r.line("> "), "1.2 s")
	require.Contains(t, r.screen(), "Cancel tools/call github_create_issue?")
	r.keys("y")
	require.Equal(t, []string{"withdraw s-1 7"}, r.backend.acts)
}

func TestRequestsUnderWayAreFoundByTheWordsOfTheirStatus(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	addHangingCall(r)
	r.pollInFlight()
	for _, typed := range []string{"waits", "running", "status:waits", "status:running"} {
		r.keys("/ ctrl+u").typeText(typed).keys("enter")
		require.Contains(t, r.screen(), "1 of 5", typed)
		require.Regexp(t, "waits|running", r.line(" 4 s"), typed)
	}
}
