package childproc

import "time"

// Usage holds the memory and processor time of a process group.
type Usage struct {
	Processes int
	CPUTime   time.Duration // since they started
	Memory    int64         // resident bytes
}
