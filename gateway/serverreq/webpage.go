package serverreq

import (
	"net/url"

	"goblin/registry/rawjson"
)

// ReasonNotWebPage is the error text for an elicitation with a URL that is no web page.
const ReasonNotWebPage = "url is no web page; servers may ask users to open http and https addresses only"

// OpensWebPage reports whether an elicitation asks for a form or for a web page. Clients
// may open the address, and other schemes run code (javascript:), show local files (file:)
// or start programs.
func OpensWebPage(params []byte) bool {
	if mode := rawjson.GetString(params, "mode"); mode != "url" {
		return true
	}
	return isWebPage(params)
}

// ErrorOpensWebPages reports whether all elicitations in the data of an error of
// [CodeURLElicitation] are for web pages.
func ErrorOpensWebPages(data []byte) bool {
	for e := range rawjson.Elements(rawjson.Get(data, "elicitations")) {
		if rawjson.IsObject(e) && !isWebPage(e) {
			return false
		}
	}
	return true
}

// InputsOpenWebPages reports whether the elicitations in a result that asks for input are
// for forms or web pages.
func InputsOpenWebPages(result []byte) bool {
	for _, input := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		if !OpensWebPage(rawjson.Get(input, "params")) {
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
