package calls

import (
	"strings"

	"goblin/gateway/e2e"
)

// behindProxy puts a proxy in front of a remote backend that is not yet used.
func behindProxy(b *e2e.Backend) *e2e.Proxy {
	b.T.Helper()
	url, _ := b.Conf["url"].(string)
	addr, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	p := e2e.NewProxy(b.T, addr)
	b.Conf["url"] = "http://" + p.Addr() + "/" + path
	return p
}
