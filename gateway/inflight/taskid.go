package inflight

import (
	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

// relatedTask is the _meta member with the task of a message (2025-11-25, tasks,
// associating messages).
const relatedTask = downstream.MetaPrefix + "related-task"

// TaskID returns the task id in a message as raw JSON, or nil.
func TaskID(obj []byte) []byte {
	if !rawjson.MayContain(obj, "related-task") {
		return nil
	}
	return rawjson.Path(obj, "_meta", relatedTask, "taskId")
}

// ReplaceTaskID replaces the task id in a message if it is the expected one, and removes
// any other.
func ReplaceTaskID(obj []byte, expected, id string) []byte {
	raw := TaskID(obj)
	if name, ok := rawjson.String(raw); !ok || name != expected {
		return DropTaskID(obj)
	}
	return rawjson.Splice(obj, rawjson.ReplaceEdit(obj, raw, rawjson.Quote(id)))
}

// DropTaskID removes the task id from a message for a receiver without that task.
func DropTaskID(obj []byte) []byte {
	if TaskID(obj) == nil {
		return obj
	}
	meta := rawjson.RemoveMember(rawjson.Get(obj, "_meta"), relatedTask)
	if string(meta) == "{}" {
		return rawjson.RemoveMember(obj, "_meta")
	}
	return rawjson.SetMember(obj, "_meta", meta)
}
