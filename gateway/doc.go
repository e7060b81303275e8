// Package gateway routes requests of MCP clients to the MCP servers that own their
// targets.
//
// It is the handler of gateway/downstream (sessions of clients) and of gateway/upstream
// (connections to servers). It knows neither their transports nor the UI, and it never
// decodes what it only passes on. The packages that it is made of do not import it.
//
// Requests run in goroutines of the session that sent them and may block. Messages of
// servers arrive on their read loops and are only queued. Results and definitions keep
// the server's bytes, except for names and URIs (see [inflight.Rewriter]). Notifications
// of changed lists are merged per session. All other notifications of a request precede
// its answer on its own stream.
//
// # A call
//
//  1. gateway/downstream reads the message and creates a [downstream.Request], which is
//     answered once. Older and stateless clients look the same from here on. A client over
//     stdio comes through gateway/bridge.
//  2. This package looks up the method. For tools, prompts and resources it asks registry
//     for the owner of the name, in the catalog that gateway/view shows this client. It
//     replaces the listed name by the server's own.
//  3. gateway/servers chooses the connection: the shared one, one of this session, or, for
//     stateless clients, that of the newer revision.
//  4. gateway/inflight records the request with its slot of the server's limit, its progress
//     token and its timeout. If the client leaves, the request is cancelled there.
//  5. gateway/upstream sends it in the revision that the server speaks and waits for the
//     answer or the timeout.
//  6. gateway/inflight rewrites URIs in the answer. gateway/telemetry records the request
//     for the UI and for metrics.
//
// Most requests need no goroutine: asyncrequest.go sends them on the read loop of the
// client and answers them on the read loop of the server.
//
// An unknown method may belong to an extension. The request goes to the server that owns
// the uri, name or taskId in its params, if the client and that server declare an extension
// in common (gateway/extensions). If a server needs a login, gateway/serverreq asks the
// client to open the page of gateway/oauth, and the call is tried again. gateway/tasks
// follows calls that run as tasks. Calls of Goblin's own tools end in step 2, in package
// meta; requests of scripts start there again, for the same client.
//
// # A request of a server
//
//  1. gateway/upstream reads it with its call, if the transport names the call.
//  2. gateway/inflight finds the calls that may have caused it, and whether all of them are
//     of one client.
//  3. gateway/serverreq chooses the client that caused it. Without one, the open UIs are
//     asked. For roots, the server's roots setting decides. No other client is ever asked.
//  4. gateway/downstream asks, see [downstream.Request.Ask]. An older client gets a request
//     on its stream. The call of a stateless client is answered by input_required with a
//     requestState, and continues when the client comes back.
//  5. The answer goes to the server. Meanwhile gateway/inflight stops the call's timeout.
//
// # An update
//
//  1. gateway/notify counts the subscribers of each resource of each server. The first one
//     makes it subscribe at the server, the last one unsubscribe. It subscribes again after
//     a reconnect.
//  2. gateway/upstream reads the update and hands it to gateway/notify, which never waits
//     there.
//  3. gateway/notify drops what the config denies, and writes the URI as each subscriber
//     spelled it.
//  4. gateway/downstream queues the update for each. For a slow client, the newest update of
//     a resource replaces those that wait.
//
// Changed lists start in registry, which compares the new list with the old one.
package gateway
