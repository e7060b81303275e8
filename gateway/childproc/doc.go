// Package childproc starts, measures and ends process groups, including those of a killed
// Goblin.
//
// A process that is killed ends no other. On Linux the kernel kills its children
// with it, but not what these started; on macOS not even the children. So each
// process of Goblin keeps a [Registry] of its children in a file, which it locks
// for its life, and the next process ends the groups in the files that
// are not locked any more ([Registry.Sweep]).
//
// A process is known by its number and its start time, and by the boot and the
// process namespace that both belong to; a number that was given to another
// process is never touched. When the child is dead and only its group is left,
// what is in it must be of the child's session and not older than the child.
// What left the group, as daemons do, is beyond reach.
//
// On Windows a job object does all this (see goblin/gateway/upstream), and
// elsewhere nothing is known of start times: there a Record does nothing. So
// does a nil one.
//
// A command whose user waits for its end need not wait for stubborn children: it hands them
// over to a process that sweeps when it has gone ([Registry.HandOver]).
//
// The package knows nothing of servers but names. All methods may be called
// from any goroutine; Sweep blocks for some three seconds at most. A record
// that cannot be kept or read is logged and costs nothing else.
package childproc

import "errors"

// ErrNoRecord is why children cannot be handed over: not all of them are recorded.
var ErrNoRecord = errors.New("child processes are not recorded")
