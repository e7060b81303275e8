package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

const configURI = "file:///srv/config.json"

func TestMovingTheCursorSendsNothing(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 j j k G g")
	require.Empty(t, r.backend.sentRequests())
}

func TestR2_05_EnterAndReloadFetchEachTime(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter")
	require.Contains(t, r.screen(), `"name": "office"`)
	r.keys("enter").keys("r")
	require.Len(t, r.backend.sentRequests(), 3)
	r.keys("esc j k / config enter")
	require.Contains(t, r.screen(), `"name": "office"`, "cached content must be shown without a request")
	require.Len(t, r.backend.sentRequests(), 3)
}

func TestReadErrorsAreShownWithTheServersWords(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setError("resources/read", "disk on fire")
	r.keys("4 / config enter enter")
	require.Contains(t, r.line("disk on fire"), "! ")
	inv := r.reg.Contents().Last(registry.Resource, "files", configURI)
	require.False(t, inv.Success)
	require.Nil(t, inv.Result)
}

func TestR2_12_SubscriptionsAreNeverAutomatic(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / day-01 enter enter l esc")
	for _, asked := range r.backend.sentRequests() {
		require.NotContains(t, asked, "subscribe")
	}
	r.keys("s")
	require.Contains(t, r.backend.sentRequests(), `resources/subscribe {"uri":"mcp://files/file:///srv/notes/day-01.md"}`)
	require.Contains(t, r.screen(), "Subscribed to mcp://files/file:///srv/notes/day-01.md")
	r.refresh(registry.Subscriptions).keys("s")
	require.Contains(t, r.backend.sentRequests(), `resources/unsubscribe {"uri":"mcp://files/file:///srv/notes/day-01.md"}`)
}

func TestRefusedSubscriptionShowsTheServersWords(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setError("resources/subscribe", "no more watchers")
	r.keys("4 / day-01 enter s")
	require.Contains(t, r.line("refused"), "no more watchers")
	r.serveSubscriptions()
	r.keys("s")
	require.Contains(t, r.screen(), "Subscribed to", "a retry must be possible")
}

func TestR2_01_SubscribeIsUnavailableWithAReason(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.SetState("files", registry.ServerState{State: registry.StateReady, Listed: true, Capabilities: []byte(`{"resources":{}}`)})
	r.refresh(registry.Servers).keys("4 / day-01 enter s")
	require.Contains(t, r.screen(), "files does not offer subscriptions; r reads again")
	require.Empty(t, r.backend.sentRequests())
}

func TestR2_02_AnUpdateMarksTheRowAndIsReadOnceWhereItIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter esc")
	require.NotContains(t, r.line("> "), "Δ", "opening it must mark the updates as seen")
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"application/json","text":"{\"name\":\"office\",\"ports\":[80,8443]}"}]}`)
	before := len(r.backend.sentRequests())
	for range 5 {
		r.reg.ResourceUpdated("files", configURI)
	}
	r.refresh(registry.Subscriptions | registry.Cached)
	require.Len(t, r.backend.sentRequests(), before+1, "five updates in a row must cause one read")
	require.Contains(t, r.line("8443"), "▎", "changed lines are marked")
	require.NotContains(t, r.line(`"name": "office"`), "▎")
	require.NotContains(t, r.line("held by"), "▎", "only content is marked")
	require.NotContains(t, r.line("> "), "Δ", "it is being viewed")
	r.tick(time.Minute)
	require.NotContains(t, r.line("8443"), "▎", "for a moment")
	require.False(t, r.app.filtering || len(r.app.Dialogs) > 0, "nothing must take the focus")
}

func TestUpdatesOfWhatIsNotLookedAtReadNothing(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 G")
	r.reg.ResourceUpdated("files", configURI)
	r.refresh(registry.Subscriptions | registry.Cached)
	require.Empty(t, r.backend.sentRequests())
	require.Contains(t, r.line("config.json"), "Δ3")
}

func TestR2_11_TemplateFormShowsTheExpandedURIWhileTyping(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setError("completion/complete", "not now")
	r.keys("4 t j enter")
	require.Contains(t, r.screen(), "Expand mcp://github/repo://{owner}/{name}/readme")
	r.typeText("mark3labs")
	require.Contains(t, r.screen(), "mcp://github/repo://mark3labs/")
	r.keys("tab").typeText("mcp gö")
	require.Contains(t, r.screen(), "mcp://github/repo://mark3labs/mcp%20g%C3%B6/readme")
	r.keys("ctrl+s")
	last := r.backend.sentRequests()[len(r.backend.sentRequests())-1]
	require.Equal(t, `resources/read {"uri":"mcp://github/repo://mark3labs/mcp%20g%C3%B6/readme"}`, last)
	inv := r.reg.Contents().Last(registry.Template, "github", "repo://{owner}/{name}/readme")
	require.NotNil(t, inv)
	require.JSONEq(t, `{"owner":"mark3labs","name":"mcp gö"}`, string(inv.Params))
	require.Contains(t, r.screen(), `"name": "office"`)
}

func TestTemplateVariablesAreCompletedByTheServer(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 t j enter")
	require.Contains(t, r.backend.sentRequests()[0], `"value":""`, "empty fields must request completions, too")
	r.typeText("go")
	require.Contains(t, r.screen(), "gobbler")
	asked := r.backend.sentRequests()[1]
	require.True(t, strings.HasPrefix(asked, "completion/complete "))
	require.Contains(t, asked, `"ref/resource"`)
	require.Contains(t, asked, `"value":"go"`)
	r.keys("tab")
	require.Contains(t, r.screen(), "repo://goblin/")
}

func TestCopyGoesToTheTerminalsClipboard(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / config enter y")
	require.Contains(t, r.term.written.String(), "\x1b]52;c;bWNwOi8vZmlsZXMvZmlsZTovLy9zcnYvY29uZmlnLmpzb24=")
	r.keys("enter Y")
	require.Contains(t, r.screen(), "Copied the content")
}

func TestContentOpensInThePagerAndIsSaved(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter e")
	require.Len(t, r.term.opened, 1)
	require.Contains(t, r.term.opened[0], `pager config.json: {"name":"office"`)
	r.keys("E")
	require.Contains(t, r.term.opened[1], "editor config.json")
	r.keys("W enter")
	require.Contains(t, r.term.saved["config.json"], `"name":"office"`)
	require.Contains(t, r.screen(), "Saved /home/config.json")
	r.keys("W enter")
	require.Contains(t, r.screen(), "already exists")
}

func TestBlobsAreSavedAsBytes(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"image/png","blob":"AAEC"}]}`)
	r.keys("4 / png enter enter e enter")
	require.Len(t, r.term.saved, 1)
	for _, data := range r.term.saved {
		require.Equal(t, "\x00\x01\x02", data)
	}
}

func TestAFailedUnsubscribeCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setError("resources/unsubscribe", "not now")
	r.keys("4 / config enter s s")
	require.Equal(t, []string{
		`resources/unsubscribe {"uri":"mcp://files/file:///srv/config.json"}`,
		`resources/unsubscribe {"uri":"mcp://files/file:///srv/config.json"}`,
	}, r.backend.sentRequests())
}

func TestTheOrderByUpdateFollowsUpdates(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4").sortBy("last update")
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/notes/day-09.md", Status: registry.SubscriptionOn, Holders: 1})
	r.clock.advance(time.Second)
	r.reg.ResourceUpdated("files", "file:///srv/notes/day-09.md")
	r.refresh(registry.Subscriptions).keys("g")
	require.Contains(t, r.line("> "), "day-09.md")
}

func TestARowThatComesBackHasTheCursorAgain(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 G")
	require.Contains(t, r.line("> "), "weather_forecast")
	r.setList("weather", registry.Tool)
	require.Contains(t, r.line("> "), "github_search")
	r.setList("weather", registry.Tool, `{"name":"forecast","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("> "), "weather_forecast")
	r.setList("weather", registry.Tool)
	r.keys("k")
	r.setList("weather", registry.Tool, `{"name":"forecast","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("> "), "github_delete_repo", "unless the user moved on")
}

func TestAPathThatIsTakenIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.term.saved["config.json"] = "mine"
	r.keys("4 / config enter enter W enter")
	require.Contains(t, r.screen(), "already exists")
	r.typeText("2").keys("enter")
	require.Contains(t, r.screen(), "Saved /home/config.json2")
	require.Equal(t, "mine", r.term.saved["config.json"])
}

func TestWhatATemplateStandsForCanBeWatched(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 t s")
	require.Contains(t, r.screen(), "expand the template first (c), then subscribe")
	r.keys("enter").typeText("notes/today.md").keys("ctrl+s").screen()
	r.keys("s").refresh(registry.Subscriptions)
	uri := "mcp://files/file:///srv/notes/today.md"
	require.Contains(t, r.backend.sentRequests(), `resources/subscribe {"uri":"`+uri+`"}`)
	require.Contains(t, r.screen(), "s unsubscribe")
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"it changed"}]}`)
	r.reg.ResourceUpdated("files", "file:///srv/notes/today.md")
	r.refresh(registry.Subscriptions | registry.Cached)
	require.Contains(t, r.screen(), "it changed")
}

func TestSkillsStandBelowTheTemplates(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 200, 40, plainEnv)
	r.setList("files", registry.Skill, `{"uri":"skill://git/SKILL.md","frontmatter":{"name":"git","description":"How we commit"},"resources":"dynamic"}`)
	r.refresh(registry.Skills).keys("4")
	require.Contains(t, r.screen(), "Templates and skills 3")
	require.Regexp(t, `s\+ files +skill://git/SKILL.md +git +skill`, r.screen())
	r.keys("t G enter")
	require.Contains(t, r.backend.sentRequests(), `resources/read {"uri":"skill://files/git/SKILL.md"}`)
	require.Contains(t, r.screen(), "How we commit")
}

func TestSubscribingToSeveralSaysToHowMany(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.serveSubscriptions()
	r.keys("4 / day enter g space space space s")
	require.Len(t, r.backend.sentRequests(), 3)
	require.Contains(t, r.screen(), "Subscribed to 3 resources")
	require.Contains(t, r.refresh(registry.Subscriptions).keys("s").screen(), "Unsubscribed from 3 resources")
	require.Contains(t, r.keys("g s").screen(), "mcp://files/", "one is called by its name")
}

func TestMarkedRowsAreActedOnTogether(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setAnswer("resources/subscribe", `{}`)
	r.keys("4 / day-0 enter g space space")
	require.Contains(t, r.screen(), "2 marked")
	require.Contains(t, r.line("day-01"), "▪")
	r.keys("s")
	var asked []string
	for _, a := range r.backend.sentRequests() {
		if strings.HasPrefix(a, "resources/subscribe") {
			asked = append(asked, a)
		}
	}
	require.Len(t, asked, 2)
	require.Contains(t, asked[1], "day-02.md")
	r.keys("y")
	require.Contains(t, r.clipboard(), "day-01.md\nmcp://files/file:///srv/notes/day-02.md")
	r.keys("esc")
	require.NotContains(t, r.screen(), "▪")
	require.Contains(t, r.line("/ day-0"), "of 16", "the filter stays")
	r.keys("y")
	require.NotContains(t, r.clipboard(), "\n")
}

func TestNothingIsSavedOrCopiedOfWhatWasNotReadYet(t *testing.T) {
	t.Parallel()
	for where, why := range map[string]string{
		"4 / config enter": "it was not read yet; enter reads it",
		"4 t":              "it was not read yet; enter reads it",
		"2":                "it was not called yet; c calls it",
		"3":                "it was not fetched yet; enter gets it",
	} {
		for _, key := range []string{"W", "Y"} {
			r := newExampleUI(t, 120, 40, plainEnv).keys(where + " " + key)
			require.Contains(t, r.screen(), "! "+why, where)
			require.Empty(t, r.app.Dialogs)
			require.Empty(t, r.term.written.String())
		}
	}
	r := newExampleUI(t, 120, 40, plainEnv)
	delete(r.backend.answers, "resources/read")
	r.keys("4 / config enter enter W")
	require.Contains(t, r.screen(), "! the last request failed; r retries it")
}
