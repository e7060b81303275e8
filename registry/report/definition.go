package report

import "time"

// Definition is how a server is started or reached, and what its process takes now.
type Definition struct {
	Command string   // with its arguments, as a shell reads them
	Folder  string   // that it runs in
	URL     string   // of a remote server
	Env     []string // names of variables that it gets besides the usual ones
	Headers []string // names of those that are sent to it
	LeftOut []string // what its filters leave out, each with its kind; the first ones
	More    int      // and so many more

	Processes int
	Processor time.Duration
	Memory    int64 // bytes
}
