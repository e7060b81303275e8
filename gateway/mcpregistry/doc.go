// Package mcpregistry asks a registry of MCP servers, and makes definitions for Goblin's
// config of what it says: the official registry's API
// (https://github.com/modelcontextprotocol/registry, docs/reference/api, v0.1) and
// server.json (its schema of 2025-12-11).
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
