// Package registry is the catalog: entries, names, server states, subscriptions and
// journals.
//
// It owns the immutable [Snapshot] of all lists and the tables that route names and URIs
// to servers. It also owns Goblin's own ("local") tools and resources. It also stores the
// UI's cache of [Contents] and the sessions. It knows no transports, files, UIs or client
// connections, and may import only its own subpackages and libraries.
//
// # Concurrency
//
// All functions are safe for concurrent use. Readers ([Registry.Load], all methods of
// Snapshot, the Resolve methods, ListedURI) use the snapshot behind an atomic pointer.
// They take no lock, except a brief one for the learned links of a server. Writers build
// a server's list in the calling goroutine without a lock. They hold the writer's mutex
// only to merge and swap, for microseconds, and their change is visible when they return.
// Writers for the same server must not race: the last one wins.
//
// Facts that change often (states, sessions, subscription counters, contents, journals)
// are in separate tables with their own mutexes. Changes build no snapshot. Lock order:
// writer, contents, subscriptions, any other.
//
// # Data that may be lost
//
// Change events merge (see [Registry.Watch]). Journals overwrite and count their oldest
// records. Log records of frequent changes are limited per second; the next record
// reports the number of suppressed ones. Least recently used contents and learned links
// are evicted. Everything else that is dropped is reported as a [Problem]. Definitions
// that client SDKs refuse are changed, see [Options] and [Entry.Changes].
//
// # Limits
//
// Servers and clients choose names, so the work is limited: no cost grows faster than the
// length of its input. Names have at most [MaxName] bytes, URIs [MaxURI]. To find an
// owner, only as many bytes of a name are read as the longest configured server name has.
// Matching one URI with all templates takes at most about 1 ms; a URI that needs more is
// not found.
//
// # Memory
//
// All strings and slices of an [Entry] share one arena per server and kind. Callers must
// not modify them.
package registry
