package demo_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goblin/gateway/demo"
)

func TestNotesAddAndRemoveChangeTheList(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	before, _ := c.list()

	added := decode[struct{ Slug, URI, MimeType string }](t, c.call("add_note", map[string]any{
		"title": "Größe & Mut!", "text": "# Courage", "format": "markdown",
	}).StructuredContent)
	require.Equal(t, "note:///gr-e-mut", added.URI)
	c.notification("notifications/resources/list_changed")
	after, _ := c.list()
	require.Len(t, after, len(before)+1)
	require.Equal(t, []contents{{URI: added.URI, MimeType: "text/markdown", Text: "# Courage"}}, c.read(added.URI))

	require.False(t, c.call("remove_note", map[string]any{"slug": added.Slug}).IsError)
	c.notification("notifications/resources/list_changed")
	after, _ = c.list()
	require.Equal(t, before, after)
	require.Equal(t, -32002, c.failure("resources/read", map[string]any{"uri": added.URI}).Code)
	require.True(t, c.call("remove_note", map[string]any{"slug": added.Slug}).IsError)
}

func TestNotesUpdatesGoToSubscribersOnly(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	edit := func(slug, text string) {
		require.False(t, c.call("edit_note", map[string]any{"slug": slug, "text": text}).IsError)
	}
	c.result("resources/subscribe", map[string]any{"uri": "note:///welcome"})
	edit("haiku", "not subscribed")
	edit("welcome", "subscribed")
	require.JSONEq(t, `{"uri":"note:///welcome"}`, string(c.notification("notifications/resources/updated")))
	require.Equal(t, "subscribed", c.read("note:///welcome")[0].Text)

	c.result("resources/unsubscribe", map[string]any{"uri": "note:///welcome"})
	c.result("resources/unsubscribe", map[string]any{"uri": "note:///welcome"})
	edit("welcome", "not any more")
	for _, m := range c.end() {
		require.NotEqual(t, "notifications/resources/updated", m.Method)
	}
}

func TestNotesCoverTextJSONAndMarkdown(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	all, _ := c.list()
	types, undescribed := map[string]bool{}, 0
	for _, r := range all {
		types[r.MimeType] = true
		require.True(t, strings.HasPrefix(r.URI, "note:///"), r.URI)
		if r.Description == "" {
			undescribed++
		}
	}
	require.Equal(t, map[string]bool{"text/plain": true, "application/json": true, "text/markdown": true}, types)
	require.Equal(t, 1, undescribed)
	require.NotContains(t, string(c.result("resources/list", nil)), `"description":""`)
}

func TestNotesRefuseWhatTheyCannotKeep(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	for name, call := range map[string]struct {
		tool string
		args map[string]any
	}{
		"JSON that is none":      {"add_note", map[string]any{"title": "x", "text": "{", "format": "json"}},
		"edit that breaks JSON":  {"edit_note", map[string]any{"slug": "goblin-facts", "text": "nope"}},
		"text over the limit":    {"add_note", map[string]any{"title": "x", "text": strings.Repeat("ü", 40<<10)}},
		"unknown format":         {"add_note", map[string]any{"title": "x", "text": "x", "format": "pdf"}},
		"missing title":          {"add_note", map[string]any{"text": "x"}},
		"edit of an unknown one": {"edit_note", map[string]any{"slug": "nope", "text": "x"}},
	} {
		require.True(t, c.call(call.tool, call.args).IsError, name)
	}
}

func TestNotesSlugsStayUnique(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	slug := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, title := range []string{"Same", "same", "SAME!", "日本", "", "🙂", strings.Repeat("long ", 24), "it's"} {
		result := c.call("add_note", map[string]any{"title": title, "text": "x"})
		if title == "" {
			require.True(t, result.IsError)
			continue
		}
		note := decode[struct{ Slug string }](t, result.StructuredContent)
		require.Regexp(t, slug, note.Slug)
		require.False(t, seen[note.Slug], note.Slug)
		seen[note.Slug] = true
	}
	require.True(t, seen["same"] && seen["same-2"] && seen["same-3"] && seen["its"])
}

func TestNotesSearchAndPrompts(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	found := c.call("search_notes", map[string]any{"query": "MUSHROOMS"})
	hits := decode[struct {
		Total int
		Notes []struct{ URI string }
	}](t, found.StructuredContent)
	require.Equal(t, 2, hits.Total)
	require.Equal(t, "resource_link", found.Content[1].Type)
	require.Equal(t, hits.Notes[0].URI, found.Content[1].URI)

	all := string(c.result("prompts/get", map[string]any{"name": "summarize_notes"}))
	require.Equal(t, 6, strings.Count(all, `"type":"resource"`))
	one := string(c.result("prompts/get", map[string]any{"name": "improve_note", "arguments": map[string]any{"slug": "haiku", "tone": "formal"}}))
	require.Contains(t, one, `"uri":"note:///haiku"`)
	require.Contains(t, one, "formal")
	require.Contains(t, c.failure("prompts/get", map[string]any{"name": "improve_note"}).Message, "welcome")

	values, _, _ := c.complete(prompt("improve_note"), "slug", "h", nil)
	require.Equal(t, []string{"haiku", "lighthouse", "shopping"}, values)
}

func TestClockTicksForSubscribersOnly(t *testing.T) { synctest.Test(t, clockTicks) }

func clockTicks(t *testing.T) {
	c := start(t, "clock")
	c.result("resources/subscribe", map[string]any{"uri": "clock://zones/Europe%2FBerlin"})
	c.result("resources/subscribe", map[string]any{"uri": "clock://moon"}) // has no updates
	first := c.read("clock://zones/Europe%2FBerlin")[0].Text
	for range 2 {
		require.JSONEq(t, `{"uri":"clock://zones/Europe%2FBerlin"}`, string(c.notification("notifications/resources/updated")))
	}
	require.NotEqual(t, first, c.read("clock://zones/Europe%2FBerlin")[0].Text)

	c.result("resources/unsubscribe", map[string]any{"uri": "clock://zones/Europe%2FBerlin"})
	c.unread = nil
	c.result("resources/subscribe", map[string]any{"uri": "clock://now"})
	for range 2 {
		require.JSONEq(t, `{"uri":"clock://now"}`, string(c.notification("notifications/resources/updated")))
	}
}

func TestClockTellsTheTime(t *testing.T) {
	t.Parallel()
	c := start(t, "clock")
	for zone, want := range map[string]string{
		"Europe/Berlin":   `{"zone":"Europe/Berlin","time":"2026-07-01T14:00:00+02:00","weekday":"Wednesday","abbreviation":"CEST","offset":"+02:00","daylightSaving":true}`,
		"Asia/Kathmandu":  `{"zone":"Asia/Kathmandu","time":"2026-07-01T17:45:00+05:45","weekday":"Wednesday","abbreviation":"+0545","offset":"+05:45","daylightSaving":false}`,
		"Pacific/Chatham": `{"zone":"Pacific/Chatham","time":"2026-07-02T00:45:00+12:45","weekday":"Thursday","abbreviation":"+1245","offset":"+12:45","daylightSaving":false}`,
	} {
		got := c.call("time_in", map[string]any{"zone": zone, "at": "2026-07-01T12:00:00Z"})
		require.JSONEq(t, want, string(got.StructuredContent))
	}
	for _, args := range []map[string]any{{"zone": "Atlantis"}, {"zone": "../../etc/passwd"}, {"zone": "UTC", "at": "noon"}, {}} {
		require.True(t, c.call("time_in", args).IsError, args)
	}
}

func TestClockCompletesZones(t *testing.T) {
	t.Parallel()
	c := start(t, "clock")
	values, total, more := c.complete(template("clock://zones/{zone}"), "zone", "europe/b", nil)
	require.Equal(t, []string{"Europe/Berlin"}, values)
	require.Equal(t, 1, total)
	require.False(t, more)
	values, _, _ = c.complete(prompt("find_meeting_time"), "there", "tokyo", nil)
	require.Equal(t, []string{"Asia/Tokyo"}, values)
	values, _, _ = c.complete(prompt("find_meeting_time"), "nothing", "", nil)
	require.Equal(t, []string{}, values)
	// All suggestions work.
	values, _, _ = c.complete(template("clock://zones/{zone}"), "zone", "", nil)
	require.Greater(t, len(values), 50)
	for _, zone := range values {
		require.False(t, c.call("time_in", map[string]any{"zone": zone}).IsError, zone)
	}
	meeting := string(c.result("prompts/get", map[string]any{"name": "find_meeting_time", "arguments": map[string]any{"here": "Europe/Oslo", "there": "UTC"}}))
	require.Contains(t, meeting, `"uri":"clock://zones/Europe%2FOslo"`)
}

func TestProgressComesInOrderBeforeTheResponse(t *testing.T) {
	t.Parallel()
	for server, call := range map[string]map[string]any{
		"clock":   {"name": "countdown", "arguments": map[string]any{"from": 20, "interval_ms": 1}},
		"library": {"name": "take_inventory", "arguments": map[string]any{"shelves": 20, "pace_ms": 1}},
	} {
		t.Run(server, func(t *testing.T) {
			c := start(t, server)
			c.result("tools/call", call)
			require.Empty(t, c.unread, "progress without a token")

			call["_meta"] = map[string]any{"progressToken": "p7"}
			c.result("tools/call", call)
			require.Len(t, c.unread, 20)
			for i, m := range c.unread {
				p := decode[struct {
					ProgressToken   json.RawMessage
					Progress, Total int
					Message         string
				}](t, m.Params)
				require.Equal(t, `"p7"`, string(p.ProgressToken))
				require.Equal(t, i+1, p.Progress)
				require.Equal(t, 20, p.Total)
				require.NotEmpty(t, p.Message)
			}
		})
	}
}

func TestLibraryListsTwoThousandOverSeveralPages(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	all, pages := c.list()
	require.Len(t, all, 2000)
	require.Equal(t, 7, pages)
	types := map[string]int{}
	for _, r := range all {
		types[r.MimeType]++
	}
	require.Equal(t, map[string]int{
		"text/markdown": 641, "text/plain": 400, "application/json": 642, "text/csv": 121,
		"image/png": 100, "image/svg+xml": 72, "multipart/mixed": 12, "": 12,
	}, types)
}

func TestLibraryIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	a, b := start(t, "library"), start(t, "library")
	listA, _ := a.list()
	listB, _ := b.list()
	require.Equal(t, listA, listB)
	for _, uri := range []string{"library://books/ada-thornwick/the-amber-compass", "library://covers/0007.png", "library://ledgers/2019-04.csv"} {
		require.Equal(t, a.read(uri), b.read(uri))
	}
	// The text is the same in every build.
	require.Contains(t, a.read("library://cards/0001.json")[0].Text, `"title": "The Amber Compass"`)
}

func TestLibraryPicturesArePictures(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	data, err := base64.StdEncoding.DecodeString(c.read("library://covers/0042.png")[0].Blob)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, 48, img.Bounds().Dx())

	shown := c.call("show_cover", map[string]any{"book": "ada-thornwick/the-amber-compass"})
	require.Equal(t, "image", shown.Content[1].Type)
	require.Equal(t, c.read("library://covers/0001.png")[0].Blob, shown.Content[1].Data)

	box := c.read("library://boxes/01")
	require.Len(t, box, 3)
	require.Equal(t, []string{"text/plain", "application/json", "image/png"}, []string{box[0].MimeType, box[1].MimeType, box[2].MimeType})
	all, _ := c.list()
	rare := slices.IndexFunc(all, func(r listed) bool { return strings.HasPrefix(r.URI, "urn:isbn:") })
	require.Empty(t, all[rare].MimeType)
	require.Equal(t, "text/markdown", c.read(all[rare].URI)[0].MimeType)
}

func TestLibraryTemplates(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	templates := decode[struct {
		ResourceTemplates []struct{ URITemplate, Title, MimeType string }
	}](t, c.result("resources/templates/list", nil)).ResourceTemplates
	require.Len(t, templates, 2)
	require.Equal(t, "library://books/{author}/{title}", templates[0].URITemplate)
	require.Equal(t, "library://search{?q,limit}", templates[1].URITemplate)

	exact := c.read("library://books/dov-harrow/the-brass-river")
	spelled := c.read("library://books/dov%2Dharrow/the-brass-river")
	require.Equal(t, exact[0].Text, spelled[0].Text)
	require.Equal(t, "library://books/dov%2Dharrow/the-brass-river", spelled[0].URI)

	for uri, want := range map[string]int{
		"library://search?q=the%20amber%20compass&limit=3": 3,
		"library://search?limit=2&q=mystery":               2,
		"library://search":                                 20,
		"library://search?q=zeppelin":                      0,
	} {
		found := decode[struct{ Books []struct{ URI string } }](t, json.RawMessage(c.read(uri)[0].Text))
		require.Len(t, found.Books, want, uri)
		for _, b := range found.Books {
			require.NotEmpty(t, c.read(b.URI)[0].Text)
		}
	}
	require.Contains(t, c.failure("resources/read", map[string]any{"uri": "library://search?limit=many"}).Message, "many")
}

func TestLibraryCompletion(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	books := template("library://books/{author}/{title}")
	values, _, _ := c.complete(books, "author", "ada", nil)
	require.Equal(t, []string{"ada-thornwick"}, values)

	his, total, more := c.complete(books, "title", "", map[string]string{"author": "dov-harrow"})
	require.Len(t, his, 32)
	require.Equal(t, 32, total)
	require.False(t, more)
	for _, title := range his {
		require.NotEmpty(t, c.read("library://books/dov-harrow/"+title))
	}
	values, total, more = c.complete(books, "title", "", nil)
	require.Len(t, values, 100)
	require.Greater(t, total, 100)
	require.True(t, more)

	values, _, _ = c.complete(template("library://search{?q,limit}"), "q", "myst", nil)
	require.Equal(t, []string{"mystery"}, values)
	values, _, _ = c.complete(prompt("discuss_book"), "title", "the-amber", map[string]string{"author": "ada-thornwick"})
	require.Equal(t, []string{"the-amber-compass", "the-amber-garden"}, values)
	values, _, _ = c.complete(prompt("recommend_book"), "mood", "c", nil)
	require.Equal(t, []string{"cosy", "curious", "melancholy", "whimsical"}, values)
}

func TestLibrarySearchToolLinksWhatItFinds(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	found := c.call("search_books", map[string]any{"query": "cosy", "limit": 4})
	hits := decode[struct {
		Total int
		Books []struct{ URI, Book string }
	}](t, found.StructuredContent)
	require.Greater(t, hits.Total, 4)
	require.Len(t, hits.Books, 4)
	require.Len(t, found.Content, 5)
	for i, b := range hits.Books {
		link := found.Content[i+1]
		require.Equal(t, "resource_link", link.Type)
		require.Equal(t, b.URI, link.URI)
		require.Equal(t, link.MimeType, c.read(link.URI)[0].MimeType)
	}
	tools := string(c.result("tools/list", nil))
	require.Contains(t, tools, `"outputSchema"`)
	require.NotContains(t, tools, `"null"`)
	for _, args := range []map[string]any{{}, {"query": "x", "limit": 0}, {"query": 7}} {
		require.True(t, c.call("search_books", args).IsError, args)
	}
}

func TestLibraryPromptsEmbedResources(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	type messages struct {
		Messages []struct {
			Content struct {
				Type     string
				Resource contents
			}
		}
	}
	discuss := decode[messages](t, c.result("prompts/get", map[string]any{
		"name": "discuss_book", "arguments": map[string]any{"author": "ada-thornwick", "title": "the-amber-compass"},
	}))
	require.Equal(t, c.read("library://books/ada-thornwick/the-amber-compass")[0], discuss.Messages[0].Content.Resource)

	recommend := decode[messages](t, c.result("prompts/get", map[string]any{"name": "recommend_book", "arguments": map[string]any{"mood": "cosy", "genre": "history"}}))
	require.Equal(t, "library://search?q=cosy%20history&limit=10", recommend.Messages[1].Content.Resource.URI)
	c.read(recommend.Messages[1].Content.Resource.URI)
	c.failure("prompts/get", map[string]any{"name": "recommend_book"})
	c.failure("prompts/get", map[string]any{"name": "discuss_book", "arguments": map[string]any{"author": "a", "title": "b"}})
}

func TestLibraryLoansUpdateTheirResource(t *testing.T) {
	t.Parallel()
	c := start(t, "library")
	const uri = "library://loans/current"
	book := map[string]any{"book": "ada-thornwick/the-amber-compass", "reader": "Grimble"}
	loans := func() int {
		return len(decode[struct{ Loans []struct{ Reader string } }](t, json.RawMessage(c.read(uri)[0].Text)).Loans)
	}
	c.result("resources/subscribe", map[string]any{"uri": uri})
	for _, step := range []struct {
		tool    string
		refused bool
		out     int
	}{
		{"return_book", true, 0},
		{"borrow_book", false, 1},
		{"borrow_book", true, 1},
		{"return_book", false, 0},
		{"borrow_book", false, 1},
		{"clear_loans", false, 0},
	} {
		require.Equal(t, step.refused, c.call(step.tool, book).IsError, step.tool)
		require.Equal(t, step.out, loans(), step.tool)
		if step.refused {
			require.Empty(t, c.unread, step.tool)
			continue
		}
		require.JSONEq(t, `{"uri":"`+uri+`"}`, string(c.notification("notifications/resources/updated")))
	}
}

func TestUnfitArgumentsAreToldInWords(t *testing.T) {
	t.Parallel()
	clients := map[string]*client{"library": start(t, "library"), "notes": start(t, "notes")}
	for _, tt := range []struct {
		server, tool string
		args         map[string]any
		want         string
	}{
		{"library", "search_books", nil, `missing "query"`},
		{"notes", "add_note", map[string]any{}, `missing "title", "text"`},
		{"library", "search_books", map[string]any{"query": 7}, `"query": got number, want string`},
		{"library", "search_books", map[string]any{"query": "x", "limit": 0}, `"limit": minimum: got 0, want 1`},
		{"library", "search_books", map[string]any{"limit": 51}, `"limit": maximum: got 51, want 50; missing "query"`},
		{"library", "take_inventory", map[string]any{"shelves": 1.5, "pace_ms": 1234567}, `"pace_ms": maximum: got 1,234,567, want 10,000; "shelves": got number, want integer`},
		{"notes", "add_note", map[string]any{"title": "", "text": nil, "format": "pdf"}, `"format": value must be one of 'text', 'markdown', 'json'; "text": got null, want string; "title": minLength: got 0, want 1`},
		{"notes", "add_note", map[string]any{"title": strings.Repeat("é", 121), "text": []int{1}}, `"text": got array, want string; "title": maxLength: got 121, want 120`},
	} {
		got := clients[tt.server].call(tt.tool, tt.args)
		require.True(t, got.IsError)
		require.Equal(t, "invalid arguments: "+tt.want, got.Content[0].Text)
	}
}

// BenchmarkLibraryStart measures the time until the library answers.
func BenchmarkLibraryStart(b *testing.B) {
	for b.Loop() {
		require.NoError(b, demo.Run(b.Context(), "library", strings.NewReader(""), io.Discard))
	}
}
