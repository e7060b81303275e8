// Package servercheck reports defects of one server that affect clients.
//
// It starts a local server in its own process and reads its output as raw lines:
// [goblin/gateway/upstream] repairs most defects. It reaches a remote server through
// [goblin/gateway/doctor]. Each finding belongs to a rule of [Rules].
//
// The check sends no request that may have an effect: it calls no listed tool, gets no
// prompt, and reads resources only on request. It calls one tool, prompt and resource that
// the server does not list.
//
// Everything from the server is untrusted. Texts of findings are short, safe for terminals
// and free of the config's secrets; sizes, counts and times are limited.
//
// Run blocks until the server has stopped. It takes at most the startup_timeout for the
// start, and [Options.AnswerTime] for each request. A server that answers nothing gets one
// request and a ping.
package servercheck
