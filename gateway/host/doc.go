// Package host makes one process the host of a config, and leads everybody
// else to it.
//
// It owns the Unix socket and the lock of a host ([Locate], [Listen]), the
// detached start ([Start]), the first line of a connection and the check of
// who is at its other end ([Dial], [Listener.Serve]), the control channel
// ([Control]) and the bridge that `goblin stdio` is ([Bridge]).
//
// It must not know what MCP requests mean or where they go: connections are
// handed to the functions in [Handlers]. The bridge knows the few methods
// whose effect a client takes for granted for the life of its session
// (initialize, the log level, subscriptions), because it repeats them to the
// next host when one dies.
//
// Every function may be called from any goroutine. Serve and Bridge block
// until they end and wait for the goroutines that they started; the exceptions
// are written at Bridge and Start. Dial, Control and Start block up to their
// time limits or the end of their context. Nothing here is dropped but the
// answers to repeated requests and a client's answers to a host that has died.
package host
