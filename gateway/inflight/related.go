package inflight

import (
	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

// relatedTask is the member of _meta that names the task which a message belongs to
// (2025-11-25, tasks, associating messages).
const relatedTask = downstream.MetaPrefix + "related-task"

// Related is the id of the task that a message names, nil for none.
func Related(obj []byte) []byte {
	if !rawjson.Mentions(obj, "related-task") {
		return nil
	}
	return rawjson.Path(obj, "_meta", relatedTask, "taskId")
}

// Relate puts another id in the place of the one that a message names, if that is
// the expected one; the sender may name no other task.
func Relate(obj []byte, expected, id string) []byte {
	raw := Related(obj)
	if name, ok := rawjson.String(raw); !ok || name != expected {
		return Unrelated(obj)
	}
	return rawjson.Splice(obj, rawjson.Replace(obj, raw, rawjson.Quote(id)))
}

// Unrelated takes the task's name out of a message to a receiver that has no such task.
func Unrelated(obj []byte) []byte {
	if Related(obj) == nil {
		return obj
	}
	meta := rawjson.Without(rawjson.Get(obj, "_meta"), relatedTask)
	if string(meta) == "{}" {
		return rawjson.Without(obj, "_meta")
	}
	return rawjson.SetMember(obj, "_meta", meta)
}
