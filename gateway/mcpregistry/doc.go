// Package mcpregistry searches registries of MCP servers and turns entries into config
// definitions.
//
// See https://github.com/modelcontextprotocol/registry.
//
// It owns the requests, the cache of their answers, how packages and remotes become
// commands and URLs, and how bundles are downloaded and unpacked. It must not know how a
// user is asked, where secrets are kept, and how a config is written: it gives questions,
// takes answers, and names secrets by references.
//
// Whatever a registry says is foreign: bounded in bytes, pages and time, checked entry by
// entry, and never given to a shell. Texts are as they came; the caller that prints them
// makes them safe. Nothing of it is expanded as a variable when it stands in a config.
//
// A [Client] may be used from any goroutine; its methods block until the answer is there,
// or half a minute is over.
package mcpregistry
