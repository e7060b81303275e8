// Usage tells what the processes of a server take of the machine. It asks the
// system at the moment that it is asked, and knows no servers.

package childproc

import "time"

// Usage holds the memory and processor time of a group of processes.
type Usage struct {
	Processes int
	CPUTime   time.Duration // since they began
	Memory    int64         // bytes that are in memory
}
