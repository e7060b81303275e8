// Package childproc starts, measures and stops process groups, including leftovers of a
// killed Goblin.
//
// A killed process stops no other process. On Linux the kernel kills its children, but
// not their descendants; on macOS it kills neither. So each Goblin process lists its
// children in a file ([Registry]) and locks the file for life. The next process stops the
// groups in files that are no longer locked ([Registry.Sweep]).
//
// A child is identified by process id, start time, boot and process namespace. So a
// reused process id is never killed. If only the child's group is left, its members must
// belong to the child's session. They must not be older than the child. Processes that
// left the group (as daemons do) are out of reach.
//
// On Windows a job object does all this (see [Group]). On other systems start times are
// unknown and a Registry does nothing. A nil Registry does nothing either.
//
// A command whose user waits for its exit need not wait for slow children. It passes them
// to a process that sweeps after it exited ([Registry.HandOver]).
//
// All methods are safe for concurrent use. Sweep blocks for about three seconds at most.
// Failures to write or read the file are only logged.
package childproc

import "errors"

// ErrNoRecord is the error if not all children are recorded, so they cannot be handed
// over.
var ErrNoRecord = errors.New("child processes are not recorded")
