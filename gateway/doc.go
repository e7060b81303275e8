// Package gateway routes requests of MCP clients to the MCP servers that own their
// targets.
//
// It is the handler of gateway/downstream (sessions of clients) and of gateway/upstream
// (connections to servers). It must not know their transports or the UI, and decodes only
// what it needs for routing. Its subpackages do not import it.
//
// Requests run in goroutines of their session and may block. Messages of servers arrive
// on read loops and are only queued. Results and definitions keep the server's bytes,
// except names and URIs (see [inflight.Rewriter]). List changes are merged per session.
// All other notifications of a request precede its answer on its stream.
//
// # A call
//
//  1. gateway/downstream reads the message and creates a [downstream.Request], which
//     hides the differences between revisions and is answered once. A client over stdio
//     connects through gateway/bridge.
//  2. This package looks up the method. It asks registry for the owner of the name, in
//     the catalog that gateway/view shows this client. It replaces the listed name by the
//     server's own.
//  3. gateway/servers chooses the connection: the shared one, that of the session, or
//     that of the newer revision for stateless clients.
//  4. gateway/inflight records the request with its slot of the server's limit, progress
//     token and timeout. If the client leaves, it cancels the request.
//  5. gateway/upstream sends the request in the server's revision and waits for the
//     answer.
//  6. gateway/inflight rewrites URIs in the answer. gateway/telemetry records the request
//     for the UI and for metrics.
//
// Most requests need no goroutine: asyncrequest.go sends them on the client's read loop
// and answers them on the server's.
//
// An unknown method may belong to an extension (gateway/extensions). If client and server
// declare a common extension, it goes to the owner of the uri, name or taskId. If a
// server needs a login, gateway/serverreq sends the client the page of gateway/oauth and
// retries. gateway/tasks follows calls that run as tasks. Calls of Goblin's own tools end
// at step 2, in package meta. Requests of scripts start there again, for the same client.
//
// # A request from a server
//
//  1. gateway/upstream reads it with its call, if the transport names the call.
//  2. gateway/inflight finds the calls that may have caused it.
//  3. gateway/serverreq chooses the client of these calls. If there is no single one, it
//     chooses the open UIs. For roots, the server's roots setting decides. No other
//     client ever gets the request.
//  4. gateway/downstream sends it, see [downstream.Request.Ask]: to older clients as a
//     request, to stateless clients as input_required with a requestState. A stateless
//     client's call continues when the client returns.
//  5. The answer goes to the server. In between, gateway/inflight stops the call's
//     timeout.
//
// # An update
//
//  1. gateway/notify counts subscribers per resource and server. It subscribes for the
//     first one, unsubscribes after the last, and subscribes again after a reconnect.
//  2. gateway/upstream passes the update to gateway/notify, which does not block.
//  3. gateway/notify drops updates that the config denies, and writes the URI as each
//     subscriber spelled it.
//  4. gateway/downstream queues the update for each subscriber. For a slow client, a
//     newer update of a resource replaces an unsent one.
//
// Changed lists start in registry, which compares the new list with the old one.
package gateway
