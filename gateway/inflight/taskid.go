package inflight

import (
	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

// relatedTask is the member of _meta that names the task which a message belongs to
// (2025-11-25, tasks, associating messages).
const relatedTask = downstream.MetaPrefix + "related-task"

// TaskID is the id of the task that a message names, nil for none.
func TaskID(obj []byte) []byte {
	if !rawjson.MayContain(obj, "related-task") {
		return nil
	}
	return rawjson.Path(obj, "_meta", relatedTask, "taskId")
}

// ReplaceTaskID puts another id in the place of the one that a message names, if that is
// the expected one; the sender may name no other task.
func ReplaceTaskID(obj []byte, expected, id string) []byte {
	raw := TaskID(obj)
	if name, ok := rawjson.String(raw); !ok || name != expected {
		return DropTaskID(obj)
	}
	return rawjson.Splice(obj, rawjson.ReplaceEdit(obj, raw, rawjson.Quote(id)))
}

// DropTaskID takes the task's name out of a message to a receiver that has no such task.
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
