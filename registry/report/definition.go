package report

import "time"

// Definition describes how a server is started or reached, and the current resources of
// its process.
type Definition struct {
	Command string   // with its arguments, quoted for a shell
	Folder  string   // working directory
	URL     string   // of a remote server
	Env     []string // names of variables in addition to the usual ones
	Headers []string // names of sent headers
	LeftOut []string // first entries hidden by filters, each with its kind
	More    int      // number of further ones

	Processes int
	Processor time.Duration
	Memory    int64 // bytes
}
