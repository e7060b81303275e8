// Package mcpregistry searches registries of MCP servers and turns entries into config
// definitions.
//
// See https://github.com/modelcontextprotocol/registry.
//
// It implements the requests and their cache, turns packages and remotes into commands
// and URLs, and downloads and unpacks bundles. It must not prompt users, store secrets or
// write configs: it returns questions, takes answers, and refers to secrets by name.
//
// Registry data is untrusted. It is limited in bytes, pages and time, and each entry is
// validated. None of it reaches a shell or is expanded as a variable in a config.
// Texts are not escaped; callers that print them must do that.
//
// A [Client] is safe for concurrent use. Its queries block for at most 30 s, downloads
// for 15 min.
package mcpregistry
