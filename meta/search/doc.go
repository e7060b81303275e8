// Package search finds tools, prompts, resources and templates by words.
//
// It provides an [Index] of the visible catalog of a [registry.Registry]. It must not
// depend on the tools that use it, on transports or UIs.
//
// # Index
//
// Each list of one server and kind has an immutable segment: a sorted dictionary, and
// posting lists of document numbers and weights. Queries therefore take no lock. A
// changed list gets a new segment, so an update's cost depends on that list, not on the
// catalog.
//
// Servers choose the indexed texts, so they are limited: 4 KiB per field, 1,000 words per
// entry, 24 MiB of index per list and 64 MiB in total. Lists over the limit are indexed
// by name only, and logged once. A list that changes continuously is read up to 32 MiB of
// text at once and 512 KiB per second. Until it is read again, searches miss new and
// removed entries.
//
// # Words
//
// Words end at punctuation, at changes of case and at digits. A mixed piece ("getUser",
// "k8s") counts as its parts and as a whole. Case and diacritics are folded, and common
// English endings removed. In names, titles and URIs, two consecutive words also count as
// one: "data base" finds "database" and vice versa.
//
// # Ranking
//
// The ranking is BM25F. Fields have different weights: name, title, description, URI, the
// names, descriptions and values of arguments, and the server's name. Field lengths count
// relative to a fixed usual length, so that a segment depends only on its list. Rare
// words count more. A word also finds, with less weight, longer words that begin with it
// and synonyms. Goblin's own tools are found only by queries with its name. Equal scores
// are sorted by listed name, then by server.
//
// An unknown word is taken as misspelled. It finds the words with the fewest edits and
// their synonyms: one edit, or two from six letters on. Words with the same first letter
// come first, then words of many entries; at most four count. If a common English word is
// nearer than any word of the catalog, it finds nothing.
//
// After two consecutive hits of a server, the best hit of a server without any comes next.
// Servers that the query names, also by a synonym, are exempt.
package search
