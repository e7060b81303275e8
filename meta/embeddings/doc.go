// Package embeddings adds vector similarity to tool searches.
//
// See https://platform.openai.com/docs/api-reference/embeddings.
//
// It owns the vectors and how they are blended with the search by words, which it asks
// first. Each text is sent once for as long as some tool has it; vectors are not kept over
// restarts. Whatever fails is counted, and the search by words alone answers then: nobody
// waits long for the other program, and after a failure nobody waits for a while. It must
// not know who searches.
//
// [Searcher.Run] asks for the vectors of tools; [Searcher.Search] may be called from any
// goroutine.
package embeddings
