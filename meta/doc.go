// Package meta provides Goblin's own tools: catalog, describe, search, call and script.
//
// An agent finds with them the one thing it needs among hundreds, without all of them in
// its context.
//
// It owns the definitions of these tools, the check of their arguments and the
// cards they answer with; goblin/meta/search owns the ranking, goblin/meta/lua
// the language. It reads the registry only, and what a script asks of servers
// goes through [Options].Ask. It must not know transports, sessions or screens.
//
// Everything exported is safe for concurrent use. The work of a plain page of a
// catalog does not grow with the catalog; a filter by MIME type walks it.
package meta
