package demo

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

type bookHits struct {
	Total int        `json:"total" jsonschema:"how many books match, which can be more than are listed"`
	Books []bookCard `json:"books"`
}

type inventory struct {
	Shelves int      `json:"shelves"`
	Books   int      `json:"books"`
	Dust    string   `json:"dust"`
	Missing []string `json:"missing" jsonschema:"books that are out"`
}

func (l *library) addTools(srv *server) {
	bookArg := mcp.WithString("book", mcp.Required(), mcp.MaxLength(100),
		mcp.Description("author/title as search_books lists it, e.g. ada-thornwick/the-amber-compass"))
	srv.addTool(newTool("search_books", "Search the catalog", "🔎", readOnly|idempotent,
		"Finds books by words in title, author, genre, mood or year; answers with index cards and with links to read the books.",
		mcp.WithString("query", mcp.Required(), mcp.MaxLength(200), mcp.Description("Words that must all occur, e.g. cosy mystery")),
		mcp.WithInteger("limit", mcp.Min(1), mcp.Max(50), mcp.DefaultNumber(5), mcp.Description("How many to list")),
		outputSchema[bookHits](),
	), l.search)
	srv.addTool(newTool("show_cover", "Show a cover", "🖼️", readOnly|idempotent,
		"Paints the cover of a book: a PNG image.",
		bookArg,
	), l.cover)
	srv.addTool(newTool("take_inventory", "Take the inventory", "🐌", readOnly|idempotent,
		"Walks along the shelves and counts. Slow on purpose: three seconds by default, with progress at every shelf; can be cancelled.",
		mcp.WithInteger("shelves", mcp.Min(1), mcp.Max(200), mcp.DefaultNumber(12), mcp.Description("How many shelves to walk along")),
		mcp.WithInteger("pace_ms", mcp.Min(0), mcp.Max(10000), mcp.DefaultNumber(250), mcp.Description("Milliseconds per shelf")),
		outputSchema[inventory](),
	), l.inventory)
	srv.addTool(newTool("borrow_book", "Borrow a book", "🤲", 0,
		"Lends a book to a reader; library://loans/current changes.",
		bookArg,
		mcp.WithString("reader", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(60), mcp.Description("Name of the reader")),
	), l.borrow)
	srv.addTool(newTool("return_book", "Return a book", "📥", 0,
		"Takes a book back; library://loans/current changes.",
		bookArg,
	), l.giveBack)
	srv.addTool(newTool("clear_loans", "Forget all loans", "🔥", destructive|idempotent,
		"Tears the page with the loans out of the book. This can't be undone."), l.clear)
}

func (l *library) search(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	hits := l.find(req.GetString("query", ""), req.GetInt("limit", 5))
	links := make([]mcp.Content, len(hits.Books))
	for i, card := range hits.Books {
		b := l.byPath[card.Book]
		link := mcp.NewResourceLink(card.URI, card.Book, fmt.Sprintf("A %s book of %s by %s", b.mood, b.genre, b.author), "text/markdown")
		link.Title, link.Size = b.title, mcp.ToInt64Ptr(int64(len(b.text())))
		links[i] = link
	}
	return structured(hits, fmt.Sprintf("%d books match, %d shown.", hits.Total, len(hits.Books)), links...), nil
}

func (l *library) cover(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b, ok := l.byPath[req.GetString("book", "")]
	if !ok {
		return l.unknown(req), nil
	}
	return mcp.NewToolResultImage("The cover of "+b.title, base64.StdEncoding.EncodeToString(coverPNG(b.number)), "image/png"), nil
}

func (l *library) inventory(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	shelves := req.GetInt("shelves", 12)
	pace := time.Duration(req.GetInt("pace_ms", 250)) * time.Millisecond
	steps := l.p.progress(req, shelves)
	for shelf := 1; shelf <= shelves; shelf++ {
		if !wait(ctx, pace) {
			l.p.log("library", fmt.Sprintf("inventory stopped at shelf %d", shelf))
			return mcp.NewToolResultErrorf("stopped at shelf %d of %d", shelf, shelves), nil
		}
		steps.step(shelf, fmt.Sprintf("Shelf %d: %s", shelf, genres[shelf%len(genres)]))
	}
	l.mu.Lock()
	missing := []string{}
	for _, out := range l.loans {
		missing = append(missing, out.Book)
	}
	l.mu.Unlock()
	found := inventory{Shelves: shelves, Books: len(l.books) - len(missing), Dust: "considerable", Missing: missing}
	l.p.log("library", fmt.Sprintf("inventory: %d books", found.Books))
	return structured(found, fmt.Sprintf("%d shelves, %d books, dust: considerable.", shelves, found.Books)), nil
}

func (l *library) borrow(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b, ok := l.byPath[req.GetString("book", "")]
	if !ok {
		return l.unknown(req), nil
	}
	reader := req.GetString("reader", "")
	refused := l.setLoans(func(loans []loan) ([]loan, string) {
		if i := slices.IndexFunc(loans, func(out loan) bool { return out.Book == b.path() }); i >= 0 {
			return loans, fmt.Sprintf("%s is out: %s has it", b.title, loans[i].Reader)
		}
		if len(loans) >= maxLoans {
			return loans, fmt.Sprintf("%d books are out, which is all we lend: return one first", maxLoans)
		}
		return append(loans, loan{Book: b.path(), Reader: reader, Since: today()}), ""
	})
	if refused != "" {
		return mcp.NewToolResultError(refused), nil
	}
	l.p.log("library", reader+" borrowed "+b.title)
	return mcp.NewToolResultText(reader + " takes " + b.title + " home."), nil
}

func (l *library) giveBack(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b, ok := l.byPath[req.GetString("book", "")]
	if !ok {
		return l.unknown(req), nil
	}
	refused := l.setLoans(func(loans []loan) ([]loan, string) {
		i := slices.IndexFunc(loans, func(out loan) bool { return out.Book == b.path() })
		if i < 0 {
			return loans, b.title + " is not out"
		}
		return slices.Delete(loans, i, i+1), ""
	})
	if refused != "" {
		return mcp.NewToolResultError(refused), nil
	}
	return mcp.NewToolResultText(b.title + " is back on its shelf."), nil
}

func (l *library) clear(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	l.setLoans(func([]loan) ([]loan, string) { return nil, "" })
	return mcp.NewToolResultText("All loans are cleared."), nil
}

func (l *library) unknown(req mcp.CallToolRequest) *mcp.CallToolResult {
	return mcp.NewToolResultErrorf("no book %q; find author/title with search_books", req.GetString("book", ""))
}
