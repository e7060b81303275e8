// Package embeddings adds vector similarity to tool searches.
//
// It uses the API of https://platform.openai.com/docs/api-reference/embeddings and blends
// the result with the search by words. [Searcher.Run] requests the vectors of tools;
// [Searcher.Search] is safe for concurrent use. Each text is sent once as long as a tool
// has it; restarts lose the vectors. After a failure, searches use words alone for a
// while without waiting for the service.
package embeddings
