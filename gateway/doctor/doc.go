// Package doctor diagnoses servers and the local setup, and suggests fixes.
//
// It checks servers through [goblin/gateway/upstream], in a separate process or
// connection, which it closes before it returns. It must not know how results are shown.
// Texts quote servers, so the caller must escape them.
//
// All functions are safe for concurrent use. They block until the checks are done. A check takes at
// most the server's startup_timeout, 30 s for its lists, and some seconds to stop it. Finding the right
// URL of a remote server takes at most another startup_timeout.
package doctor
