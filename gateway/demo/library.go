package demo

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	libraryPage    = 300 // entries per page: seven pages of resources
	booksTemplate  = "library://books/{author}/{title}"
	searchTemplate = "library://search{?q,limit}"
	searchPrefix   = "library://search"
	loansURI       = "library://loans/current"
	maxLoans       = 100
)

type library struct {
	p       *peer
	books   []book
	byPath  map[string]book
	authors []string // slugs
	listed  map[string]struct{}

	mu    sync.Mutex
	loans []loan
}

type loan struct {
	Book   string `json:"book"`
	Reader string `json:"reader"`
	Since  string `json:"since"`
}

func newLibrary(p *peer) backend {
	l := &library{p: p, books: makeBooks(), byPath: map[string]book{}, listed: map[string]struct{}{}}
	for _, b := range l.books {
		l.byPath[b.path()] = b
		if len(l.authors) == 0 || l.authors[len(l.authors)-1] != b.authorSlug {
			l.authors = append(l.authors, b.authorSlug)
		}
	}
	srv := newServer(p, "library", "Library",
		"2,000 resources in Markdown, plain text, JSON, CSV, PNG and SVG, over several pages.",
		"A small library of invented books. Start with library://welcome, search_books finds books, "+
			"library://books/{author}/{title} reads one, and take_inventory is slow on purpose.",
		"📚", l.completions())
	srv.pageSize = libraryPage
	l.addResources(srv)
	l.addTemplates(srv)
	l.addTools(srv)
	l.addPrompts(srv)
	return backend{exists: func(uri string) bool {
		_, listed := l.listed[uri]
		return listed || uri == searchPrefix || strings.HasPrefix(uri, searchPrefix+"?")
	}}
}

func (l *library) completions() completer {
	titles := func(resolved map[string]string) []string {
		var slugs []string
		for _, b := range l.books {
			if author := resolved["author"]; author == "" || author == b.authorSlug {
				slugs = append(slugs, b.slug)
			}
		}
		slices.Sort(slugs)
		return slices.Compact(slugs)
	}
	authors := func(map[string]string) []string { return l.authors }
	fixed := func(values ...string) func(map[string]string) []string {
		return func(map[string]string) []string { return values }
	}
	return completer{
		booksTemplate + " author": authors,
		booksTemplate + " title":  titles,
		searchTemplate + " q":     fixed(slices.Concat(genres, moods)...),
		searchTemplate + " limit": fixed("5", "10", "20", "50"),
		"discuss_book author":     authors,
		"discuss_book title":      titles,
		"recommend_book mood":     fixed(moods...),
		"recommend_book genre":    fixed(genres...),
	}
}

// addResources requires unique names, because cursors are names.
func (l *library) addResources(srv *server) {
	add := func(uri, name, title, mime string, size int, read resourceHandler, more ...mcp.ResourceOption) {
		opts := append([]mcp.ResourceOption{mcp.WithResourceTitle(title)}, more...)
		if mime != "" {
			opts = append(opts, mcp.WithMIMEType(mime))
		}
		if size >= 0 {
			opts = append(opts, mcp.WithResourceSize(int64(size)))
		}
		srv.addResource(mcp.NewResource(uri, name, opts...), read)
		l.listed[uri] = struct{}{}
	}
	addText := func(uri, name, title, mime, text string, more ...mcp.ResourceOption) {
		add(uri, name, title, mime, len(text), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return textContents(uri, mime, text), nil
		}, more...)
	}
	addBlob := func(uri, name, title, mime string, data []byte) {
		add(uri, name, title, mime, len(data), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{blob(uri, mime, data)}, nil
		})
	}

	addText("library://welcome", "welcome", "Welcome to the library", "text/markdown", libraryWelcome,
		mcp.WithResourceDescription("Start here: what is on which shelf"), mcp.WithResourceIcons(icon("📚")),
		mcp.WithAnnotations([]mcp.Role{mcp.RoleUser, mcp.RoleAssistant}, 1, "2026-03-20T09:30:00Z"))
	addText("library://catalog.csv", "catalog.csv", "Catalog", "text/csv", catalogCSV(l.books),
		mcp.WithResourceDescription("All 640 books in one table"))
	catalog := toJSON(cards(l.books))
	addText("library://catalog.json", "catalog.json", "Catalog for programs", "application/json", catalog,
		mcp.WithResourceDescription("All 640 index cards"))
	add(loansURI, "loans", "Loans", "application/json", -1, l.readLoans,
		mcp.WithResourceDescription("What is out now; changes with borrow_book, return_book and clear_loans"))

	for _, b := range l.books {
		name := fmt.Sprintf("%s by %s", b.slug, b.authorSlug)
		addText(b.uri(), name, b.title, "text/markdown", b.text(),
			mcp.WithResourceDescription(fmt.Sprintf("A %s book of %s by %s, %d", b.mood, b.genre, b.author, b.year)),
			mcp.WithAnnotations([]mcp.Role{mcp.RoleUser}, 0.5, fmt.Sprintf("%d-01-01T00:00:00Z", b.year)))
		addText(fmt.Sprintf("library://cards/%04d.json", b.number), fmt.Sprintf("card-%04d.json", b.number),
			"Index card: "+b.title, "application/json", toJSON(b.card()))
	}
	for n := range numNotes {
		addText(fmt.Sprintf("library://margins/%03d.txt", n+1), fmt.Sprintf("margin-%03d.txt", n+1),
			fmt.Sprintf("Pencilled note %d", n+1), "text/plain", readerNote(n, l.books))
	}
	for n := range numLedger {
		month, table := ledger(n, l.books)
		addText("library://ledgers/"+month+".csv", "ledger-"+month+".csv", "Loans of "+month, "text/csv", table)
	}
	for n := range numCovers {
		addBlob(fmt.Sprintf("library://covers/%04d.png", n+1), fmt.Sprintf("cover-%04d.png", n+1),
			"Cover: "+l.books[n].title, "image/png", coverPNG(n+1))
	}
	for n := range numPlates {
		addBlob(fmt.Sprintf("library://bookplates/%02d.svg", n+1), fmt.Sprintf("bookplate-%02d.svg", n+1),
			fmt.Sprintf("Bookplate No. %d", n+1), "image/svg+xml", bookplate(n))
	}
	l.addSpecials(add)
}

// addSpecials adds rare books with a URI without authority and an unlisted MIME type.
// Boxes have several contents of different types.
func (l *library) addSpecials(add func(uri, name, title, mime string, size int, read resourceHandler, more ...mcp.ResourceOption)) {
	for n := range numRare {
		b := l.books[53*n]
		uri := "urn:isbn:" + rareISBN(n)
		add(uri, fmt.Sprintf("rare-%02d", n+1), "Rare: "+b.title, "", len(b.text()),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return textContents(uri, "text/markdown", b.text()), nil
			}, mcp.WithResourceDescription("From the locked cabinet, known by its ISBN only"))
	}
	for n := range numBoxes {
		b := l.books[n]
		uri := fmt.Sprintf("library://boxes/%02d", n+1)
		add(uri, fmt.Sprintf("box-%02d", n+1), fmt.Sprintf("Archive box %d", n+1), "multipart/mixed", -1,
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{
					mcp.TextResourceContents{URI: uri + "/label.txt", MIMEType: "text/plain", Text: "Papers about " + b.title + "\n"},
					mcp.TextResourceContents{URI: uri + "/card.json", MIMEType: "application/json", Text: toJSON(b.card())},
					blob(uri+"/cover.png", "image/png", coverPNG(b.number)),
				}, nil
			}, mcp.WithResourceDescription("A label, an index card and a picture in one read"))
	}
}

func (l *library) addTemplates(srv *server) {
	srv.addTemplate(newTemplate(booksTemplate, "book", "A book", "📖", "text/markdown",
		"One book, e.g. library://books/ada-thornwick/the-amber-compass; completion lists authors and their titles",
	), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		// Exact URIs are listed resources. Others are spelled differently or unknown.
		path, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, "library://books/"))
		b, ok := l.byPath[strings.ToLower(path)]
		if err != nil || !ok {
			return nil, errNoResource(req.Params.URI)
		}
		return textContents(req.Params.URI, "text/markdown", b.text()), nil
	})
	srv.addTemplate(newTemplate(searchTemplate, "search", "Search the catalog", "🔎", "application/json",
		"Index cards of the books that match, e.g. library://search?q=mystery&limit=5; 20 by default",
	), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		u, err := url.Parse(req.Params.URI)
		if err != nil {
			return nil, errNoResource(req.Params.URI)
		}
		limit := 20
		if text := u.Query().Get("limit"); text != "" {
			if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > numBooks {
				return nil, fmt.Errorf("limit %q is not a number from 1 to %d", text, numBooks)
			}
		}
		return textContents(req.Params.URI, "application/json", toJSON(l.find(u.Query().Get("q"), limit))), nil
	})
}

func (l *library) addPrompts(srv *server) {
	srv.addPrompt(newPrompt("recommend_book", "Recommend a book", "💡", "Asks for three books for a mood.",
		argument("mood", "Mood", "How it should feel, e.g. cosy", mcp.RequiredArgument()),
		argument("genre", "Genre", "e.g. mystery; any if left out"),
	), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		mood, genre := req.Params.Arguments["mood"], req.Params.Arguments["genre"]
		if mood == "" {
			return nil, fmt.Errorf("argument %q is missing, e.g. %s", "mood", moods[0])
		}
		want := strings.TrimSpace(mood + " " + genre)
		uri := searchPrefix + "?q=" + url.PathEscape(want) + "&limit=10" // as the template expands
		return promptResult("Three books for a "+mood+" evening",
			mcp.NewTextContent("I would like to read something "+want+". Recommend three of these books, one line each."),
			embedded(uri, "application/json", toJSON(l.find(want, 10)))), nil
	})
	srv.addPrompt(newPrompt("discuss_book", "Discuss a book", "💬", "Brings a book along as an embedded resource and asks for questions for a reading circle.",
		argument("author", "Author", "e.g. ada-thornwick", mcp.RequiredArgument()),
		argument("title", "Title", "e.g. the-amber-compass", mcp.RequiredArgument()),
	), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		path := req.Params.Arguments["author"] + "/" + req.Params.Arguments["title"]
		b, ok := l.byPath[path]
		if !ok {
			return nil, fmt.Errorf("no book %q; completion lists authors and titles", path)
		}
		return promptResult("Questions about "+b.title,
			embedded(b.uri(), "text/markdown", b.text()),
			mcp.NewTextContent("Write five questions about this book for a reading circle.")), nil
	})
}

func (l *library) find(query string, limit int) bookHits {
	words := strings.Fields(strings.ToLower(query))
	hits := bookHits{Books: []bookCard{}}
	for _, b := range l.books {
		text := strings.ToLower(strings.Join([]string{b.title, b.author, b.genre, b.mood, b.path(), strconv.Itoa(b.year)}, " "))
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		hits.Total++
		if len(hits.Books) < limit {
			hits.Books = append(hits.Books, b.card())
		}
	}
	return hits
}

func cards(books []book) []bookCard {
	cards := make([]bookCard, len(books))
	for i, b := range books {
		cards[i] = b.card()
	}
	return cards
}

func (l *library) readLoans(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return textContents(loansURI, "application/json", toJSON(map[string]any{"loans": append([]loan{}, l.loans...)})), nil
}

func (l *library) setLoans(change func([]loan) ([]loan, string)) (refused string) {
	l.mu.Lock()
	l.loans, refused = change(l.loans)
	l.mu.Unlock()
	if refused == "" {
		l.p.notifyUpdated(loansURI)
	}
	return refused
}

func blob(uri, mime string, data []byte) mcp.BlobResourceContents {
	return mcp.BlobResourceContents{URI: uri, MIMEType: mime, Blob: base64.StdEncoding.EncodeToString(data)}
}

func toJSON(v any) string {
	text, _ := json.MarshalIndent(v, "", "  ") // can't fail for these types
	return string(text) + "\n"
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

const libraryWelcome = `# Welcome to the library

Everything here is a resource. On the shelves:

| shelf                            | what                                | type             |
|----------------------------------|-------------------------------------|------------------|
| library://books/{author}/{title} | 640 short books                     | text/markdown    |
| library://cards/NNNN.json        | their index cards                   | application/json |
| library://margins/NNN.txt        | 400 notes pencilled in the margins  | text/plain       |
| library://ledgers/YYYY-MM.csv    | ten years of loans                  | text/csv         |
| library://covers/NNNN.png        | 100 covers                          | image/png        |
| library://bookplates/NN.svg      | 72 bookplates                       | image/svg+xml    |
| library://boxes/NN               | boxes with several things in each   | multipart/mixed  |
| urn:isbn:…                       | the locked cabinet                  | see its contents |

Things to try:

- Read library://search?q=mystery&limit=5, or call **search_books**.
- Call **take_inventory** and watch its progress, or cancel it.
- Subscribe to library://loans/current, then call **borrow_book**.
- Ask for the prompt **discuss_book**: completion knows the authors and titles.
`
