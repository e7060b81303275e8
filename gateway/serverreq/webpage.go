package serverreq

import (
	"net/url"

	"goblin/registry/rawjson"
)

// ReasonNotWebPage is the error for an elicitation whose URL is not a web page.
const ReasonNotWebPage = "url is not a web page; only http and https URLs are allowed"

// opensWebPage reports whether an elicitation asks for a form or a web page. Clients may
// open the URL, and other schemes can run code (javascript:), show local files (file:) or
// start programs.
func opensWebPage(params []byte) bool {
	if mode := rawjson.GetString(params, "mode"); mode != "url" {
		return true
	}
	return isWebPage(params)
}

// ErrorOpensWebPages reports whether all elicitations in the data of a
// [CodeURLElicitation] error are for web pages.
func ErrorOpensWebPages(data []byte) bool {
	for e := range rawjson.Elements(rawjson.Get(data, "elicitations")) {
		if rawjson.IsObject(e) && !isWebPage(e) {
			return false
		}
	}
	return true
}

// InputsOpenWebPages reports whether all elicitations in an input-required result are for
// forms or web pages.
func InputsOpenWebPages(result []byte) bool {
	for _, input := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		if !opensWebPage(rawjson.Get(input, "params")) {
			return false
		}
	}
	return true
}

func isWebPage(params []byte) bool {
	address := rawjson.GetString(params, "url")
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
