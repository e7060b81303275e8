package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	maxNotes    = 1000
	maxNoteText = 64 << 10
	noteScheme  = "note:///"
)

// note has a slug that never changes.
type note struct {
	slug, title, description, mime, text string
	changed                              time.Time
}

func (n note) uri() string { return noteScheme + n.slug }

type notes struct {
	p  *peer
	mu sync.Mutex
	// bySlug and the list of resources change under the same lock, so that they agree.
	bySlug map[string]note
}

type noteCard struct {
	Slug     string `json:"slug" jsonschema:"name of the note in the other tools"`
	URI      string `json:"uri" jsonschema:"where to read the note"`
	Title    string `json:"title"`
	MimeType string `json:"mimeType"`
	Size     int    `json:"size" jsonschema:"bytes of text"`
}

type noteHits struct {
	Total int        `json:"total"`
	Notes []noteCard `json:"notes"`
}

func (n note) card() noteCard {
	return noteCard{Slug: n.slug, URI: n.uri(), Title: n.title, MimeType: n.mime, Size: len(n.text)}
}

func newNotes(p *peer) backend {
	nb := &notes{p: p, bySlug: map[string]note{}}
	completions := completer{
		"improve_note slug": func(map[string]string) []string { return nb.slugs() },
		"improve_note tone": func(map[string]string) []string {
			return []string{"friendly", "formal", "short", "like a goblin"}
		},
	}
	srv := newServer(p, "notes", "Notes",
		"A small notebook: every note is a resource that you can read, edit and subscribe to.",
		"A notebook kept in memory. Every note is a resource note:///<slug>. Use add_note, edit_note and remove_note to "+
			"change it; subscribe to a note to be notified of edits. Nothing is saved: a restart resets the notebook.",
		"📝", completions)
	nb.addTools(srv)
	nb.addPrompts(srv)
	for _, n := range firstNotes() {
		nb.put(n)
	}
	return backend{exists: func(uri string) bool {
		_, ok := nb.get(strings.TrimPrefix(uri, noteScheme))
		return ok && strings.HasPrefix(uri, noteScheme)
	}}
}

func (nb *notes) addTools(srv *server) {
	slug := mcp.WithString("slug", mcp.Required(), mcp.MaxLength(100),
		mcp.Description("Name of the note, the last part of its URI, e.g. welcome"))
	text := mcp.WithString("text", mcp.Required(), mcp.MaxLength(maxNoteText), mcp.Description("The whole text of the note"))
	srv.addTool(newTool("add_note", "Add a note", "➕", 0,
		"Adds a note and returns its URI. The resource list changes.",
		mcp.WithString("title", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(120), mcp.Description("The topic in one line")),
		text,
		mcp.WithString("format", mcp.Enum("text", "markdown", "json"), mcp.DefaultString("text"), mcp.Description("How the text is written")),
		outputSchema[noteCard](),
	), mcp.NewTypedToolHandler(nb.add))
	srv.addTool(newTool("edit_note", "Edit a note", "✏️", destructive|idempotent,
		"Replaces the text of a note. Its subscribers are notified.",
		slug, text,
		outputSchema[noteCard](),
	), mcp.NewTypedToolHandler(nb.edit))
	srv.addTool(newTool("remove_note", "Remove a note", "🗑️", destructive,
		"Throws a note away. The resource list changes.",
		slug,
	), mcp.NewTypedToolHandler(nb.remove))
	srv.addTool(newTool("search_notes", "Search the notes", "🔎", readOnly|idempotent,
		"Finds the notes whose title or text contains the words, in any case. No words: all notes.",
		mcp.WithString("query", mcp.MaxLength(200), mcp.Description("Words to look for, e.g. milk")),
		outputSchema[noteHits](),
	), mcp.NewTypedToolHandler(nb.search))
}

func (nb *notes) addPrompts(srv *server) {
	srv.addPrompt(newPrompt("summarize_notes", "Summarize the notebook", "🗒️", "Asks for a short summary of all notes, which come along as embedded resources."), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		const most = 50 // limits the size for models
		contents := []mcp.Content{mcp.NewTextContent("Summarize these notes in five lines, the most pressing thing first.")}
		for _, slug := range nb.slugs() {
			if n, ok := nb.get(slug); ok && len(contents) <= most {
				contents = append(contents, embedded(n.uri(), n.mime, n.text))
			}
		}
		return promptResult("A summary of the notebook", contents...), nil
	})
	srv.addPrompt(newPrompt("improve_note", "Improve a note", "✨", "Asks for a better version of one note.",
		argument("slug", "Note", "Which note", mcp.RequiredArgument()),
		argument("tone", "Tone", "How it should sound; friendly if left out"),
	), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		n, ok := nb.get(req.Params.Arguments["slug"])
		if !ok {
			return nil, fmt.Errorf("no note %q; known: %s", req.Params.Arguments["slug"], strings.Join(nb.slugs(), ", "))
		}
		tone := cmp.Or(req.Params.Arguments["tone"], "friendly")
		return promptResult("A better version of "+n.title,
			mcp.NewTextContent("Rewrite this note so that it is clear and sounds "+tone+". Keep every fact."),
			embedded(n.uri(), n.mime, n.text)), nil
	})
}

func (nb *notes) add(_ context.Context, _ mcp.CallToolRequest, args struct {
	Title  string `json:"title"`
	Text   string `json:"text"`
	Format string `json:"format"`
},
) (*mcp.CallToolResult, error) {
	mime := map[string]string{"": "text/plain", "text": "text/plain", "markdown": "text/markdown", "json": "application/json"}[args.Format]
	if bad := checkNote(mime, args.Text); bad != "" {
		return mcp.NewToolResultError(bad), nil
	}
	nb.mu.Lock()
	if len(nb.bySlug) >= maxNotes {
		nb.mu.Unlock()
		return mcp.NewToolResultErrorf("the notebook is full (%d notes): remove one first", maxNotes), nil
	}
	n := note{slug: nb.freeSlug(args.Title), title: args.Title, mime: mime, text: args.Text, changed: time.Now()}
	nb.putLocked(n)
	nb.mu.Unlock()
	nb.p.listChanged()
	nb.p.log("notes", "added "+n.uri())
	return structured(n.card(), "Added "+n.uri(), n.link()), nil
}

func (nb *notes) edit(_ context.Context, _ mcp.CallToolRequest, args struct {
	Slug string `json:"slug"`
	Text string `json:"text"`
},
) (*mcp.CallToolResult, error) {
	nb.mu.Lock()
	n, ok := nb.bySlug[args.Slug]
	if ok {
		if bad := checkNote(n.mime, args.Text); bad != "" {
			nb.mu.Unlock()
			return mcp.NewToolResultError(bad), nil
		}
		n.text, n.changed = args.Text, time.Now()
		nb.putLocked(n)
	}
	nb.mu.Unlock()
	if !ok {
		return nb.unknown(args.Slug), nil
	}
	nb.p.listChanged()
	nb.p.notifyUpdated(n.uri())
	nb.p.log("notes", "edited "+n.uri())
	return structured(n.card(), "Edited "+n.uri(), n.link()), nil
}

func (nb *notes) remove(_ context.Context, _ mcp.CallToolRequest, args struct {
	Slug string `json:"slug"`
},
) (*mcp.CallToolResult, error) {
	nb.mu.Lock()
	n, ok := nb.bySlug[args.Slug]
	if ok {
		delete(nb.bySlug, args.Slug)
		nb.p.srv.resources.remove(n.uri())
	}
	nb.mu.Unlock()
	if !ok {
		return nb.unknown(args.Slug), nil
	}
	nb.p.listChanged()
	nb.p.log("notes", "removed "+n.uri())
	return mcp.NewToolResultText("Removed " + n.uri()), nil
}

func (nb *notes) search(_ context.Context, _ mcp.CallToolRequest, args struct {
	Query string `json:"query"`
},
) (*mcp.CallToolResult, error) {
	query := strings.ToLower(strings.TrimSpace(args.Query))
	hits := noteHits{Notes: []noteCard{}}
	var links []mcp.Content
	for _, slug := range nb.slugs() {
		n, ok := nb.get(slug)
		if ok && strings.Contains(strings.ToLower(n.title+"\n"+n.text), query) {
			hits.Notes = append(hits.Notes, n.card())
			links = append(links, n.link())
		}
	}
	hits.Total = len(hits.Notes)
	return structured(hits, fmt.Sprintf("%d notes found", hits.Total), links...), nil
}

func (nb *notes) unknown(slug string) *mcp.CallToolResult {
	return mcp.NewToolResultErrorf("no note %q; find notes with search_notes", slug)
}

func (n note) link() mcp.ResourceLink {
	link := mcp.NewResourceLink(n.uri(), n.slug, n.description, n.mime)
	link.Title, link.Size = n.title, mcp.ToInt64Ptr(int64(len(n.text)))
	return link
}

func checkNote(mime, text string) string {
	switch {
	case len(text) > maxNoteText:
		return fmt.Sprintf("the text has %d bytes, the limit is %d", len(text), maxNoteText)
	case mime == "application/json" && !json.Valid([]byte(text)):
		return "the text of a JSON note must be JSON"
	}
	return ""
}

func (nb *notes) get(slug string) (note, bool) {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	n, ok := nb.bySlug[slug]
	return n, ok
}

func (nb *notes) slugs() []string {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	return slices.Sorted(maps.Keys(nb.bySlug))
}

func (nb *notes) put(n note) {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	nb.putLocked(n)
}

// putLocked lists a note with its size and time, so that an edit also changes the list.
func (nb *notes) putLocked(n note) {
	nb.bySlug[n.slug] = n
	opts := []mcp.ResourceOption{
		mcp.WithResourceTitle(n.title),
		mcp.WithMIMEType(n.mime),
		mcp.WithResourceSize(int64(len(n.text))),
		mcp.WithLastModified(n.changed.UTC().Format(time.RFC3339)),
	}
	if n.description != "" {
		opts = append(opts, mcp.WithResourceDescription(n.description))
	}
	nb.p.srv.addResource(mcp.NewResource(n.uri(), n.slug, opts...),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			n, ok := nb.get(strings.TrimPrefix(req.Params.URI, noteScheme))
			if !ok { // it was just removed
				return nil, errNoResource(req.Params.URI)
			}
			return textContents(n.uri(), n.mime, n.text), nil
		})
}

// freeSlug returns ASCII lower-case letters, digits and dashes, and a number if
// necessary. The caller must hold nb.mu.
func (nb *notes) freeSlug(title string) string {
	slug := cmp.Or(slugify(title), "note")
	free := slug
	for i := 2; ; i++ {
		if _, taken := nb.bySlug[free]; !taken {
			return free
		}
		free = slug + "-" + strconv.Itoa(i)
	}
}

func slugify(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\''
	})
	slug := strings.ReplaceAll(strings.Join(words, "-"), "'", "")
	return strings.Trim(slug[:min(len(slug), 60)], "-")
}

// firstNotes returns plain text, Markdown and JSON, one note without a description.
func firstNotes() []note {
	at := time.Date(2026, time.March, 20, 9, 30, 0, 0, time.UTC)
	return []note{
		{
			slug: "welcome", title: "Welcome", mime: "text/markdown", changed: at,
			description: "Start here: what this notebook can do",
			text: `# Welcome to the notebook

You are reading a **resource** of the demo server *notes*. Things to try:

- Read another note: every one is a resource ` + "`note:///<slug>`" + `.
- Call the tool ` + "`add_note`" + ` and watch the resource list grow.
- Subscribe to this note, then call ` + "`edit_note`" + ` with the slug ` + "`welcome`" + `.
- Ask for the prompt ` + "`summarize_notes`" + `, which brings all notes along.

Nothing is saved. When the server stops, the notebook is as you found it.
`,
		},
		{
			slug: "shopping", title: "Shopping list", mime: "text/plain", changed: at.Add(26 * time.Hour),
			description: "For the cave, before Friday",
			text: `lantern oil
milk
oats
mushrooms (the brown ones, not the singing ones)
a new broom
`,
		},
		{
			slug: "ideas", title: "Ideas for the workshop", mime: "text/markdown", changed: at.Add(51 * time.Hour),
			description: "A list of half-built things",
			text: `# Ideas for the workshop

1. A kettle that whistles in tune
2. A map that folds *itself*
3. A door bell that only rings for friends

| idea     | difficulty | fun   |
|----------|-----------:|-------|
| kettle   |          3 | high  |
| map      |          8 | higher|
| bell     |          5 | high  |

> Whatever can be taken apart can be put together differently.
`,
		},
		{
			slug: "goblin-facts", title: "Facts about goblins", mime: "application/json", changed: at.Add(75 * time.Hour),
			description: "Carefully collected, poorly checked",
			text: `{
  "favourite_food": ["mushrooms", "toast", "borrowed toast"],
  "average_height_cm": 87.5,
  "can_keep_secrets": false,
  "known_languages": {"spoken": 4, "whistled": 2},
  "hoard": {"spoons": 1024, "buttons": 65536, "left_socks": 9007199254740993}
}
`,
		},
		{
			slug: "lighthouse", title: "Letter from the lighthouse", mime: "text/plain", changed: at.Add(99 * time.Hour),
			description: "From a cousin by the sea",
			text: `Dear all,

the new lamp turns once in twelve seconds and the gulls have stopped
complaining. Three ships came by this week: one with apples, one with
books – für euch! – and one that only wanted to know the time.

Come when the heather is in bloom. 🌿

Yours, Brindle
`,
		},
		{
			slug: "haiku", title: "Haiku", mime: "text/plain", changed: at.Add(120 * time.Hour),
			text: "Rain on the tin roof –\nthe kettle and I agree\nto stay in today.\n",
		},
	}
}
