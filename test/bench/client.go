package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// turnTime bounds one turn.
const turnTime = 30 * time.Second

// client talks to a served agent.
type client struct {
	http *http.Client
	base string
}

// conversation is a session as its client knows it.
type conversation struct {
	ID    string `json:"sessionId"`
	Token string `json:"continuationToken"`
	next  int    // index of the first event that was not read
	turns int    // that were run
}

func (s *server) client() *client {
	return &client{http: &http.Client{Transport: &http.Transport{MaxIdleConns: 64, MaxIdleConnsPerHost: 64}}, base: s.base}
}

// turn starts a conversation, or continues it if it has begun, and returns how long its turn took.
func (c *client) turn(ctx context.Context, v *conversation, text string) (time.Duration, error) {
	began := time.Now()
	if err := c.post(ctx, v, text); err != nil {
		return 0, err
	}
	err := c.await(ctx, v)
	v.turns++
	return time.Since(began), err
}

// post has a message accepted.
func (c *client) post(ctx context.Context, v *conversation, text string) error {
	path, fields := "/v1/session", map[string]string{"message": text}
	if v.ID != "" {
		path, fields["continuationToken"] = path+"/"+v.ID, v.Token
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return c.do(ctx, "POST", path, bytes.NewReader(body), func(r *http.Response) error {
		if r.StatusCode != http.StatusAccepted {
			text, _ := io.ReadAll(r.Body)
			return fmt.Errorf("POST %s: %s: %s", path, r.Status, text)
		}
		return json.NewDecoder(r.Body).Decode(v)
	})
}

// await reads the stream of a conversation up to the end of its turn.
func (c *client) await(ctx context.Context, v *conversation) error {
	return c.until(ctx, v, "turn.completed")
}

// asked reads the stream of a conversation until its turn asks for an approval.
func (c *client) asked(ctx context.Context, v *conversation) error {
	return c.until(ctx, v, "action.approval_requested")
}

func (c *client) until(ctx context.Context, v *conversation, kind string) error {
	return c.do(ctx, "GET", "/v1/session/"+v.ID+"/stream?startIndex="+strconv.Itoa(v.next), nil, func(r *http.Response) error {
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				return fmt.Errorf("reading the stream of %s: %w", v.ID, err)
			}
			var e struct {
				Type string `json:"type"`
			}
			if len(line) == 1 {
				continue
			}
			if err := json.Unmarshal(line, &e); err != nil {
				return err
			}
			v.next++
			switch e.Type {
			case kind:
				return nil
			case "turn.failed":
				return errors.New("the turn failed: " + string(line))
			}
		}
	})
}

// replay reads a whole log and returns how many events it holds.
func (c *client) replay(ctx context.Context, v *conversation) (events int, err error) {
	buf := make([]byte, 64<<10)
	err = c.do(ctx, "GET", "/v1/session/"+v.ID+"/stream?startIndex=0&follow=false", nil, func(r *http.Response) error {
		for {
			n, err := r.Body.Read(buf)
			events += bytes.Count(buf[:n], []byte("\n"))
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	return events, err
}

// page reads a page of the list of sessions, and returns how many there are on it and the cursor of the next.
func (c *client) page(ctx context.Context, cursor string) (sessions int, next string, err error) {
	path := "/v1/sessions?limit=100"
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	var answer struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     string            `json:"nextCursor"`
	}
	err = c.do(ctx, "GET", path, nil, func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &answer)
	})
	return len(answer.Sessions), answer.Next, err
}

func (c *client) do(ctx context.Context, method, path string, body io.Reader, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return read(res)
}
