package demo

import (
	"bytes"
	"fmt"
	"strings"
)

// Numbers of resources: 2,000 in all.
const (
	numRare   = 12 // urn:isbn:…
	numBoxes  = 12 // several contents per read
	numBooks  = 640
	numCards  = numBooks
	numNotes  = 400
	numLedger = 120
	numCovers = 100
	numPlates = 72
	numDesk   = 4 // welcome, catalog.json, catalog.csv, loans
	numListed = numDesk + numRare + numBoxes + numBooks + numCards + numNotes + numLedger + numCovers + numPlates
)

// book is an invented book. Its number determines all fields.
type book struct {
	number                         int // from 1
	author, authorSlug, title      string
	slug, genre, mood, place, hero string
	year, pages                    int
}

func (b book) path() string { return b.authorSlug + "/" + b.slug }
func (b book) uri() string  { return "library://books/" + b.path() }

var (
	authors = strings.Split("Ada Thornwick,Bertil Moss,Cosima Vane,Dov Harrow,Edda Lindqvist,Fenn Okafor,Greta Halloway,"+
		"Hugo Brackwater,Ines Castellan,Jory Pike,Kaya Windermere,Lorcan Fay,Mirela Stone,Nils Aspen,Odile Marchand,"+
		"Piet van Rook,Quill Ashdown,Rosa Belfry,Sami Tidewell,Tove Quarrington", ",")
	adjectives = strings.Fields("Amber Brass Crooked Distant Emerald Folded Gentle Hollow Ivory Jolly Kindled Lantern-lit " +
		"Midnight Northern Orchard Patient")
	things = strings.Fields("Compass Garden Harbour Kettle Library Mirror Orrery River Staircase Teapot Umbrella Violin " +
		"Winter Clock Bridge Letter")
	genres = strings.Fields("adventure cookery essays gardening history mystery poetry travel")
	moods  = strings.Fields("cosy curious hopeful melancholy thrilling whimsical")
	places = strings.Split("a town that is only there at low tide,the back room of a clockmaker's shop,a valley with two echoes,"+
		"a night train that never hurries,a market under an old bridge,an island shaped like a spoon,"+
		"a lighthouse far from any sea,a library with one door too many", ",")
	heroes = strings.Split("a retired cartographer,a girl who collects shadows,two rival bakers,an honest thief,"+
		"a goblin with a library card,the last lamplighter,a very small dragon,a postman without letters", ",")
	events = strings.Split("the bells began to ring by themselves,a parcel came for a man who had never lived there,"+
		"all the keys in town changed places,the river ran backwards for an afternoon,a stranger asked for yesterday's paper,"+
		"the moon was late,every cat walked off in the same direction,a widow returned a book borrowed a century ago", ",")
	lessons = strings.Split("some doors are kinder when knocked at,a map is a promise,it is never too late for the right thing,"+
		"every recipe leaves out its best line,what is lent comes back with a story,it is the pauses that make the tune,"+
		"two half-truths do not add up,the long way round has the better view", ",")
)

// rng is splitmix64. It generates the same library on every machine and with every Go
// release.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *rng) intn(n int) int { return int(r.next() % uint64(n)) }

func pick[T any](r *rng, from []T) T { return from[r.intn(len(from))] }

func pickTwo[T any](r *rng, from []T) (T, T) {
	i := r.intn(len(from))
	return from[i], from[(i+1+r.intn(len(from)-1))%len(from)]
}

// makeBooks generates 32 books by each of 20 authors.
func makeBooks() []book {
	books := make([]book, 0, numBooks)
	perAuthor := numBooks / len(authors)
	for a, author := range authors {
		for i := range perAuthor {
			r := rng(1000*a + i)
			// i runs through the adjectives twice, with another thing each time.
			title := "The " + adjectives[i%len(adjectives)] + " " + things[(a+3*i+i/len(adjectives))%len(things)]
			books = append(books, book{
				number: len(books) + 1, author: author, authorSlug: slugify(author), title: title, slug: slugify(title),
				genre: pick(&r, genres), mood: pick(&r, moods), place: pick(&r, places), hero: pick(&r, heroes),
				year: 1871 + r.intn(140), pages: 96 + 4*r.intn(120),
			})
		}
	}
	return books
}

func (b book) text() string {
	r := rng(uint64(b.number) * 7919)
	var s strings.Builder
	fmt.Fprintf(&s, "# %s\n\n*by %s, %d*\n\n", b.title, b.author, b.year)
	fmt.Fprintf(&s, "A %s book of %s, set in %s.\n", b.mood, b.genre, b.place)
	for chapter := range 2 + r.intn(4) {
		first, then := pickTwo(&r, events)
		fmt.Fprintf(&s, "\n## %d. The %s\n\n", chapter+1, pick(&r, things))
		switch r.intn(3) {
		case 0:
			fmt.Fprintf(&s, "It began on the morning when %s. %s%s noticed first, and kept it secret until %s.\n",
				first, strings.ToUpper(b.hero[:1]), b.hero[1:], then)
		case 1:
			fmt.Fprintf(&s, "No witness could say afterwards whether it was before or after %s that %s. "+
				"Only %s had kept a diary, and the page was missing.\n", first, then, b.hero)
		default:
			fmt.Fprintf(&s, "When %s, there was still tea in the pot. When %s, there was none. "+
				"This is how %s measured time.\n", first, then, b.hero)
		}
		fmt.Fprintf(&s, "\n> Remember that %s.\n", pick(&r, lessons))
	}
	s.WriteString("\n*The end.*\n")
	return s.String()
}

type bookCard struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Author string `json:"author"`
	Year   int    `json:"year"`
	Genre  string `json:"genre"`
	Mood   string `json:"mood"`
	Pages  int    `json:"pages"`
	Book   string `json:"book" jsonschema:"author and title as the tools take them"`
	URI    string `json:"uri" jsonschema:"where to read the book"`
}

func (b book) card() bookCard {
	return bookCard{
		Number: b.number, Title: b.title, Author: b.author, Year: b.year, Genre: b.genre,
		Mood: b.mood, Pages: b.pages, Book: b.path(), URI: b.uri(),
	}
}

// catalogCSV returns the catalog as a table. No field contains a comma or a quote.
func catalogCSV(books []book) string {
	var s strings.Builder
	s.WriteString("number,author,title,year,genre,mood,pages\n")
	for _, b := range books {
		fmt.Fprintf(&s, "%d,%s,%s,%d,%s,%s,%d\n", b.number, b.author, b.title, b.year, b.genre, b.mood, b.pages)
	}
	return s.String()
}

func readerNote(n int, books []book) string {
	r := rng(uint64(n) * 104729)
	b := pick(&r, books)
	return fmt.Sprintf("On %q, page %d:\n\nI read this on the day when %s.\nThe author is right that %s.\n",
		b.title, 1+r.intn(b.pages), pick(&r, events), pick(&r, lessons))
}

// ledger returns the loans of one month, counted from January 2016.
func ledger(n int, books []book) (month, table string) {
	r := rng(uint64(n) * 15485863)
	month = fmt.Sprintf("%d-%02d", 2016+n/12, 1+n%12)
	var s strings.Builder
	s.WriteString("day,number,title,days\n")
	day := 1
	for range 8 + r.intn(12) {
		b := pick(&r, books)
		day = min(28, day+r.intn(3))
		fmt.Fprintf(&s, "%s-%02d,%d,%s,%d\n", month, day, b.number, b.title, 1+r.intn(30))
	}
	return month, s.String()
}

func rareISBN(n int) string {
	digits := fmt.Sprintf("979999%06d", 4711*(n+1))
	sum := 0
	for i, d := range digits {
		sum += int(d-'0') * (1 + i%2*2)
	}
	return fmt.Sprintf("%s%d", digits, (10-sum%10)%10)
}

func bookplate(n int) []byte {
	r := rng(uint64(n) * 32452843)
	hue := r.intn(360)
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 160">`+
		`<rect width="120" height="160" rx="8" fill="hsl(%d 45%% 92%%)" stroke="hsl(%d 45%% 30%%)" stroke-width="3"/>`, hue, hue)
	for range 5 + r.intn(5) {
		fmt.Fprintf(&s, `<circle cx="%d" cy="%d" r="%d" fill="none" stroke="hsl(%d 60%% 45%%)"/>`,
			20+r.intn(80), 25+r.intn(80), 4+r.intn(22), (hue+r.intn(60))%360)
	}
	fmt.Fprintf(&s, `<text x="60" y="128" font-size="13" text-anchor="middle" font-family="serif">EX LIBRIS</text>`+
		`<text x="60" y="146" font-size="11" text-anchor="middle" font-family="serif">No. %d</text></svg>`, n+1)
	return s.Bytes()
}
