// Package clientconfig edits the config files of MCP clients and restores them byte for
// byte.
//
// It starts no programs and has no user interaction. Notes and errors for users are in
// its results and never contain a possible secret. The caller chooses the servers to
// import.
package clientconfig
