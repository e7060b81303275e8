package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

const historyURI = "file:///srv/notes/day-01.md"

// serveValues answers reads with the next of the texts.
func (r *testUI) serveValues(texts ...string) {
	n := 0
	r.backend.answers["resources/read"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		text := texts[min(n, len(texts)-1)]
		n++
		r.clock.advance(10 * time.Millisecond)
		return json.Marshal(map[string]any{"contents": []any{map[string]any{"uri": historyURI, "text": text}}})
	}
}

func (r *testUI) update() *testUI {
	r.clock.advance(time.Second)
	r.reg.ResourceUpdated("files", historyURI)
	return r.refresh(registry.Subscriptions | registry.Cached)
}

func TestTheHistoryOfAResourceKeepsEachNewContent(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		r := newExampleUI(t, size[0], size[1], plainEnv)
		r.serveSubscriptions()
		r.serveValues(`{"größe": {"cpu load": 4}}`, `{"größe": {"cpu load": 4}}`, `{"größe": {"cpu load": "97.5"}}`)
		r.keys("4 / day-01 enter H")
		require.Contains(t, r.screen(), "No reads or updates yet")
		require.Contains(t, r.screen(), "s subscribes and keeps")
		r.keys("s").refresh(registry.Subscriptions).update().update().update()
		require.Contains(t, r.screen(), "3 reads, 3 contents kept, at most 50")
		require.Regexp(t, `> 12:\d\d:\d\d\.\d+ +read +you +ok +changed`, r.screen())
		require.Regexp(t, ` read +you +ok +equal`, r.screen())
		require.Regexp(t, ` read +you +ok +first`, r.screen())

		r.keys("| enter")
		require.Contains(t, r.screen(), "$.größe['cpu load']: 4 to 97.5, now 97.5")
		require.Regexp(t, `97.5 ┤ +█+`, r.screen())
		require.Regexp(t, ` +4 ┤▁+`, r.screen())
		r.keys("| ctrl+u").typeText("$.none").keys("enter")
		require.Contains(t, r.screen(), "no number at $.none")

		r.keys("F")
		require.Contains(t, r.screen(), "1 of 3")
		require.NotContains(t, r.screen(), "3 contents kept")
		r.keys("esc v j v")
		require.Contains(t, r.screen(), "Compare resources/read")
		require.Contains(t, r.screen(), "97.5")
	}
}

func TestAMarkOfAnotherResourceIsReplaced(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.serveValues("1", "2", "3", "4")
	r.keys("4 / day-01 enter enter").keys("r H v")
	require.Contains(t, r.screen(), "Marked as A")
	r.keys("esc esc esc / day-02 enter enter").keys("r H v")
	require.Contains(t, r.line("Marked as A: resources/read"), "day-02")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("j v")
	require.Len(t, r.app.Dialogs, 2)
	require.NotContains(t, r.line("Compare"), "day-01")
}

func TestSubscribedResourcesKeepTheirContents(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	var rows []string
	for i := range 51 {
		rows = append(rows, fmt.Sprintf(`{"uri":"file:///n/%02d","name":"n%02d"}`, i, i))
	}
	r.setList("files", registry.Resource, rows...)
	r.serveSubscriptions()
	r.serveValues("1", "2", "3")
	r.keys("4")
	for i := range 51 {
		r.keys("/ ctrl+u").typeText(fmt.Sprintf("n%02d", i)).keys("enter s").refresh(registry.Subscriptions)
	}
	require.Contains(t, r.screen(), "Subscribed to")
	for range 2 {
		r.clock.advance(time.Second)
		r.reg.ResourceUpdated("files", "file:///n/00")
		r.refresh(registry.Subscriptions | registry.Cached)
	}
	r.keys("H")
	require.Contains(t, r.screen(), "New contents are not kept: 50 other subscribed resources are.")
	r.keys("esc / ctrl+u").typeText("n00").keys("enter H")
	require.Contains(t, r.screen(), "2 reads, 2 contents kept, at most 50")
	require.Contains(t, r.screen(), "Each new content is read and kept.")
}

func TestTheHistoryShowsReadsOfClientsAndUpdates(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	listed := "mcp://files/" + historyURI
	add := func(client, method, text string, change func(*registry.TrafficRecord)) {
		r.clock.advance(time.Second)
		rec := registry.TrafficRecord{Time: r.clock.now(), Session: client, Client: client, Server: "files", Method: method, Name: listed, Duration: time.Millisecond, Status: "success"}
		if text != "" {
			rec.Response = fmt.Appendf(nil, `{"contents":[{"text":%q}]}`, text)
		}
		if change != nil {
			change(&rec)
		}
		r.reg.Traffic().Append(rec)
	}
	add("cursor", "resources/read", "1", nil)
	add("cursor", "notifications/resources/updated", "", func(rec *registry.TrafficRecord) {
		rec.Status, rec.Direction, rec.Request = registry.StatusNotification, registry.ToClient, []byte(`{}`)
	})
	r.keys("4 / day-01 enter H")
	require.Regexp(t, `> .* update +cursor `, r.screen())
	for range 9_999 {
		add("cursor", "notifications/resources/updated", "", func(rec *registry.TrafficRecord) {
			rec.Status, rec.Direction, rec.Request = registry.StatusNotification, registry.ToClient, []byte(`{}`)
		})
	}
	r.refresh(registry.Traffic)
	require.Equal(t, 1, strings.Count(r.screen(), "update "), "equal updates share a row")
	require.Regexp(t, `> .* update +cursor +10000 times`, r.screen())
	r.keys("esc")
	add("claude", "resources/read", "1e400", nil)
	add("claude", "resources/read", "NaN", nil)
	add("claude", "resources/read", strings.Repeat("9", 100_000), nil)
	add("claude", "resources/read", "", func(rec *registry.TrafficRecord) {
		rec.Status, rec.Response = "failure", []byte(`{"code":-32002,"message":"gone"}`)
	})
	add("cursor", "resources/read", "3", nil)
	r.keys("H")
	for _, want := range []string{
		`read +cursor +ok +first`, `update +cursor +10000 times`, `read +claude +! failure`, `read +claude +ok +truncated +100 kB`, `> .* read +cursor +ok +changed +1 B`,
		`value: 1 to 3, now 3`,
	} {
		require.Regexp(t, want, r.screen())
	}
	r.keys("j")
	require.Contains(t, r.screen(), `"message": "gone"`)
	r.keys("esc esc / day-02 enter H")
	require.Contains(t, r.screen(), "No reads or updates yet", "of another resource")
}

func TestTheHistoryIsLimited(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.serveSubscriptions()
	var texts []string
	for i := range 40 {
		texts = append(texts, strings.Repeat(fmt.Sprint(i%10), 1_000_000))
	}
	r.serveValues(texts...)
	r.keys("4 / day-01 enter H s").refresh(registry.Subscriptions)
	for range 40 {
		r.update()
	}
	require.Contains(t, r.screen(), "31 reads, 31 contents kept, at most 50 and 32.0 MB")
	r.keys("esc H")
	require.Contains(t, r.screen(), "31 reads")
}

func TestTheHistoryMakesHostileTextVisible(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setList("files", registry.Resource, `{"uri":"file:///srv/\u001b[2Jevil\u202e","name":"x"}`)
	it := r.app.Panes[r.app.Open].Item()
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Client: "a\x1b[31mb\u202e", Server: "files", Method: "resources/read", Name: it.Listed, Status: "success",
		Response: []byte(`{"contents":[{"blob":"AAEC"},{"text":7},null,"x"]}`),
	})
	r.keys("H")
	require.Contains(t, r.screen(), `\x1b[2Jevil\u202e`)
	require.Contains(t, r.screen(), `a\x1b[31mb\u202e`)
	for _, path := range []string{"$[", "$..*..*..*", "\x1b]0;x\a", strings.Repeat("$.a", 400)} {
		r.keys("| ctrl+u").typeText(path).keys("enter")
		require.Contains(t, r.screen(), "no number at")
	}
	require.NotContains(t, r.app.View(), "\x1b[2J")
	require.NotContains(t, r.app.View(), "\u202e")
}

func TestTheHistoryOfARecordingSendsNothing(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv, ofRecording)
	r.keys("4 / day-01 enter H")
	require.Contains(t, r.screen(), "History: mcp://files/")
	require.NotContains(t, r.screen(), "subscribes")
	r.keys("s")
	require.Empty(t, r.backend.sentRequests())
}

func TestChartsAreASCIIInASCIITerminals(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"server-detail": "1 right F", "usage-detail": "6 enter F", "resource-history": "4 / day-01 enter enter H"} {
		r := newExampleUI(t, 80, 40, asciiEnv)
		r.serveValues("1", "2", "3")
		r.keys(keys)
		if name == "resource-history" {
			r.keys("esc r r H")
		}
		screen := r.screen()
		for _, c := range screen {
			require.True(t, c < 0x80 || c >= 0x3000, "%q", c)
		}
		golden(t, name+"-80x40-ascii", screen)
	}
}
