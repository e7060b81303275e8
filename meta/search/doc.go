// Package search finds tools, prompts, resources and templates by words.
//
// It owns one [Index] over the visible catalog of a [registry.Registry] and
// what a word is. It knows no tool that calls it, no transport and no screen.
//
// # The index
//
// Each list of the catalog, one server's of one kind, has a segment of its
// own: a sorted dictionary and posting lists of a document's number and a byte
// of weight. Segments never change, so queries take no lock. A list that
// changed gets a new segment. Nothing else is looked at: an update costs what the
// changed list costs, not what the catalog does.
//
// Servers choose what is indexed, so it is bounded: 4 KiB of a field, 1,000 words
// of an entry, 24 MiB of index for a list and 64 MiB for all. Of a list with more
// text than that, names are still read when there is no room for the rest; the
// journal says so once. A list that changes all the time is read for 32 MiB of text
// at once and half a MiB a second; until its turn comes, what is new in it is not
// found, and what is gone neither.
//
// # Words
//
// Words end at punctuation, at changes of case and at digits; a mixed piece
// ("getUser", "k8s") counts as its parts and as a whole. Case and diacritics
// are folded, common English endings cut. Of names, titles and URIs, two words
// that follow one another are also one: "screen shot" finds "screenshot", and
// the other way round.
//
// # Ranking
//
// BM25F: an occurrence counts by its field (name, title, description, URI,
// arguments' names, their descriptions and values, and the server's name) and by the field's length, measured
// against fixed usual lengths so that a list's segment depends on nothing but
// the list. Rare words count more than common ones. A word also finds longer
// words that begin with it and words that commonly mean the same, for less;
// where there is neither, words one edit away, or two from eight letters on.
// Goblin's own tools are found only when its name is in the query. Equal scores are in the order of listed names, then of servers.
package search
