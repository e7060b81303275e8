package report

import "time"

// Definition describes how a server is started or reached, and its process's resources.
type Definition struct {
	Command string   // quoted for a shell
	Folder  string   // working directory
	URL     string   // of a remote server
	Env     []string // variables in addition to the usual ones
	Headers []string // names only
	LeftOut []string // first entries hidden by filters, with their kinds
	More    int      // number of further ones

	Processes int
	Processor time.Duration
	Memory    int64 // bytes
}
