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
	"strings"
)

// What an answer may have.
const (
	maxAnswer = 32 << 20 // bytes
	maxLength = 8192     // numbers of a vector
)

// client asks for vectors.
type client struct {
	url, model, token string
	http              http.Client
}

func newClient(url, model, token string) *client {
	if !strings.HasSuffix(url, "/embeddings") {
		url = strings.TrimSuffix(url, "/") + "/embeddings"
	}
	return &client{url: url, model: model, token: token, http: http.Client{
		// A redirect could lead the token and the texts anywhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// embed returns a vector of length 1 for each text, all with as many numbers.
func (c *client) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.model, "input": texts})
	if err != nil {
		return nil, fmt.Errorf("write a request for embeddings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask for embeddings: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for embeddings: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for embeddings: the answer is %s", res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read embeddings: %w", err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("read embeddings: the answer has more than %d bytes", maxAnswer)
	}
	vectors, err := parse(text, len(texts))
	if err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	return vectors, nil
}

// parse reads the vectors of so many texts.
func parse(text []byte, count int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, errors.New("the answer is not the JSON of vectors")
	}
	if len(answer.Data) != count {
		return nil, fmt.Errorf("there are %d vectors for %d texts", len(answer.Data), count)
	}
	vectors := make([][]float32, count)
	for _, one := range answer.Data {
		v := one.Embedding
		if one.Index < 0 || one.Index >= count || vectors[one.Index] != nil {
			return nil, fmt.Errorf("the index %d is none of a text, or of one twice", one.Index)
		}
		if len(v) == 0 || len(v) > maxLength || len(v) != len(answer.Data[0].Embedding) {
			return nil, fmt.Errorf("a vector has %d numbers", len(v))
		}
		if !normalize(v) {
			return nil, errors.New("a vector has no direction")
		}
		vectors[one.Index] = v
	}
	return vectors, nil
}

// normalize makes a vector one of length 1. It is false for one that has no direction.
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
