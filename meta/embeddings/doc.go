// Package embeddings makes searches for tools look at meanings, too: at how near the vector
// of a query is to those of tools, as a program behind an OpenAI-compatible API makes them
// (https://platform.openai.com/docs/api-reference/embeddings; Ollama, vLLM and others have it).
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
