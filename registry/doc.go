// Package registry is the catalog: entries, names, server states, subscriptions and
// journals.
//
// It owns the immutable [Snapshot] of all lists, the tables that route names
// and URIs to servers, the servers' states, the state of subscriptions and
// sessions, Goblin's own ("local") tools and resources, the cache of
// [Contents] that screens asked for, change events, and the journals of logs
// and traffic. It knows no transport, no file, no screen and no
// client: it imports only its own subpackages and libraries.
//
// # Goroutines
//
// Everything here may be called from any goroutine. Readers ([Registry.Load]
// and all methods of Snapshot, the Resolve methods, ListedURI) work on the
// snapshot behind an atomic pointer: they take no lock but, for URIs that are
// in no list, the short one of a server's learned links. Writers that change
// a list build their server's part in their own goroutine, outside of any
// lock, and hold the writer's mutex only to merge and swap. That section runs
// for microseconds, so a mutex does what a writer goroutine behind a channel
// would, and the caller knows on return that its change is visible. Writers
// of one server must not race with each other: the last one in wins.
//
// Facts that move fast (states, sessions, subscriptions' counters, contents,
// journals) live in tables of their own, each behind its own mutex held for a
// copy; changing them builds no snapshot. Whoever holds several takes them in
// the order writer, contents, subscriptions, any other.
//
// # What may be lost
//
// Change events merge (see [Registry.Watch]): a slow reader misses
// intermediate states, never the last one. Journals overwrite their oldest
// records and count them. The registry's own records of what changed are
// bounded per second where servers or clients set the pace; the next one says
// how many were not written. Contents that are least recently used make room
// and are counted. Learned links are a bounded LRU per server. Nothing
// else is dropped without a [Problem] that says so. Definitions that client SDKs
// refuse are changed, see [Options] and [Entry.Changes].
//
// # Work
//
// Servers choose what they list, and clients what they ask for. Names of tools
// and prompts have at most [MaxName] bytes, URIs [MaxURI]; of a name no more is
// looked at than the longest configured name, and nothing grows faster than its
// length. Templates match URIs of 8 KiB at most, 100 of a server's may begin with
// a variable, and the matching of one URI with all templates takes a million steps
// at most, which is about a millisecond; a URI that needs more is not found. Names
// like a wrong one are looked for among 5,000, and not for one of more than 128
// bytes. MIME types are matched with patterns up to 256 bytes.
//
// # Bytes
//
// All strings and slices of an [Entry] share one arena per server and kind.
// They must not be modified.
package registry
