package embeddings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
)

// Limits of a response.
const (
	maxLength   = 8192           // elements of a vector
	maxVector   = 64 * maxLength // bytes, even with one element per line
	maxOverhead = 64 << 10       // bytes of a response without its vectors
	maxHead     = 64 << 10       // bytes of its headers
)

type client struct {
	url, model, token string
	http              http.Client
}

func newClient(url, model, token string) *client {
	if !strings.HasSuffix(url, "/embeddings") {
		url = strings.TrimSuffix(url, "/") + "/embeddings"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHead
	return &client{url: url, model: model, token: token, http: http.Client{
		Transport: transport,
		// A redirect could send the token and the texts to any host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// requestVectors returns a vector of length 1 for each text, all with the same number of
// elements.
func (c *client) requestVectors(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.model, "input": texts})
	if err != nil {
		return nil, fmt.Errorf("encode a request for embeddings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request embeddings: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if at, ok := errors.AsType[*neturl.Error](err); ok {
			err = at.Err // without the URL, which may contain a password
		}
		return nil, fmt.Errorf("request embeddings from %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("request embeddings from %s: HTTP status %d", req.URL.Host, res.StatusCode)
	}
	limit := maxOverhead + maxVector*len(texts)
	text, err := io.ReadAll(io.LimitReader(res.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read embeddings: %w", err)
	case len(text) > limit:
		return nil, fmt.Errorf("read embeddings: response larger than %d bytes", limit)
	}
	vectors, err := parse(text, len(texts))
	if err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	return vectors, nil
}

type vector struct {
	Index     int       `json:"index"`
	Embedding []float32 `json:"embedding"`
}

func parse(text []byte, count int) ([][]float32, error) {
	var answer struct {
		// An array limits the memory of many small elements. The decoder drops excess
		// ones.
		Data [batch + 1]*vector `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, errors.New("response is not valid JSON of embeddings")
	}
	if found := slices.Index(answer.Data[:], nil); found != count {
		return nil, fmt.Errorf("response does not contain %d vectors", count)
	}
	vectors := make([][]float32, count)
	for _, one := range answer.Data[:count] {
		v := one.Embedding
		if one.Index < 0 || one.Index >= count || vectors[one.Index] != nil {
			return nil, fmt.Errorf("invalid or duplicate index %d", one.Index)
		}
		if len(v) == 0 || len(v) > maxLength || len(v) != len(answer.Data[0].Embedding) {
			return nil, fmt.Errorf("a vector has %d elements", len(v))
		}
		if !normalize(v) {
			return nil, errors.New("a vector is zero")
		}
		vectors[one.Index] = v
	}
	return vectors, nil
}

func normalize(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if length := math.Sqrt(sum); length > 0 {
		for i := range v {
			v[i] = float32(float64(v[i]) / length)
		}
		return true
	}
	return false
}
