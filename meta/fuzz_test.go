package meta_test

import (
	"context"
	"encoding/json"
	"testing"

	"goblin/meta"
	"goblin/registry/rawjson"
)

// FuzzArguments checks that any arguments get a valid result.
func FuzzArguments(f *testing.F) {
	c := newCaller(f, newExampleCatalog(f), answerExamples)
	names := meta.Names()
	for i, args := range []string{
		`{}`, `{"serverId":"files","limit":1,"offset":2}`, `{"name":"clock_time_in"}`, `{"query":"time"}`, `{"mimeType":"[a"}`,
		`{"uri":"mcp://files/file:///{+path}"}`, `{"query":"\u0000\ud800","limit":1e3}`, `{"name":"a","name":"b"}`, `{"script":"return {1, x = null}"}`,
	} {
		f.Add(byte(i), []byte(args))
	}
	f.Fuzz(func(t *testing.T, tool byte, args []byte) {
		if rawjson.Valid(args) != nil || !rawjson.IsObject(args) {
			return // the gateway refuses everything else
		}
		name := names[int(tool)%len(names)]
		found, err := c.r.ResolveTool(name)
		if err != nil {
			t.Fatal(err)
		}
		result, err := found.Local.Tool.Call(context.Background(), args)
		if err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		var a toolResult
		if err := json.Unmarshal(result, &a); err != nil || rawjson.Valid(result) != nil || len(a.Content) == 0 {
			t.Fatalf("%s %s: %s %v", name, args, result, err)
		}
	})
}
