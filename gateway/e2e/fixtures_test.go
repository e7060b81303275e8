package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	appLog  = "file:///logs/app.log"
	appJSON = "file:///config/app.json"
)

func resource(uri string, more ...obj) obj {
	return merge(obj{"uri": uri, "name": uri}, more)
}

func tool(name string, more ...obj) obj {
	return merge(obj{"name": name, "inputSchema": obj{"type": "object"}}, more)
}

func prompt(name string, more ...obj) obj { return merge(obj{"name": name}, more) }

func template(uri string, more ...obj) obj {
	return merge(obj{"uriTemplate": uri, "name": uri}, more)
}

func merge(o obj, more []obj) obj {
	for _, m := range more {
		for k, v := range m {
			o[k] = v
		}
	}
	return o
}

// filesystem, s3 and dbsrv are the servers of the checklist.
func filesystem() obj {
	return obj{
		"resources": []obj{
			{"uri": appLog, "name": "app.log", "mimeType": "text/plain", "size": 12, "description": "log"},
			{"uri": appJSON, "name": "app.json", "mimeType": "application/json"},
		},
		"tools": []obj{tool("stat"), tool("move")},
	}
}

func s3() obj {
	return obj{"resources": []obj{resource("s3://bucket/config/app.json", obj{"mimeType": "application/json"})}}
}

func dbsrv() obj {
	return obj{
		"resources": []obj{},
		"templates": []obj{{
			"uriTemplate": "mcp://database/{table}/{id}", "name": "row", "title": "Row",
			"description": "one row", "mimeType": "application/json", "annotations": obj{"priority": 0.5},
		}},
	}
}

// in is the listed form of a server's URI.
func in(server, uri string) string { return "mcp://" + server + "/" + uri }

// do makes an action.
func do(what string, more ...obj) obj { return merge(obj{"do": what}, more) }

func actions(acts ...obj) []obj { return acts }

// randomURIs are distinct URIs of many shapes whose forms after a WHATWG parser
// differ too.
func randomURIs(n int) []string {
	r := rand.New(rand.NewPCG(3, 8))
	schemes := []string{"file:///", "x:", "urn:isbn:", "https://h.example/", "s3://b/", "mcp://q/"}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:?#[]@!$&'()*+,;=%20 äß€|^\\{}<>\"`"
	runes := []rune(letters)
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		var b strings.Builder
		b.WriteString(schemes[r.IntN(len(schemes))])
		fmt.Fprintf(&b, "%d/", len(out)) // keeps them apart after any normalisation of the rest
		for range 1 + r.IntN(20) {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		b.WriteByte('z') // trailing blanks and dots are a topic of their own
		uri := b.String()
		if strings.Contains(uri, "/.") || strings.Contains(uri, "/%2e") || seen[uri] {
			continue
		}
		seen[uri] = true
		out = append(out, uri)
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func isSorted(names []string) bool { return slices.IsSorted(names) }

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
