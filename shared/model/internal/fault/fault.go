// Package fault maps what providers say went wrong to model errors.
package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/model"
)

// maxMessage bounds the provider's words, in bytes.
const maxMessage = 1000

// FromBody maps an error in the JSON that OpenAI, Anthropic and their likes send: {"error": {"message", "type", "code"}}, and
// looser forms of it. The status is 0 for an error inside a stream.
func FromBody(status int, body []byte) *model.Error {
	d := parse(body)
	message := cmp.Or(d.Message, strings.TrimSpace(string(body)), http.StatusText(status), "no reason given")
	return &model.Error{Kind: d.kind(status, message), Message: Shorten(message)}
}

// Shorten cuts an overlong message.
func Shorten(message string) string {
	message = strings.ToValidUTF8(message, "\ufffd")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

type detail struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a word, a status, or null
}

func parse(body []byte) detail {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	var d detail
	if json.Unmarshal(body, &outer) != nil {
		return d
	}
	if json.Unmarshal(outer.Error, &d) == nil && d.Message != "" {
		return d
	}
	var text string
	_ = json.Unmarshal(outer.Error, &text) // leaves text empty when it is of another form
	d.Message = cmp.Or(text, outer.Message)
	return d
}

func (d *detail) kind(status int, message string) model.Kind {
	code := string(bytes.Trim(d.Code, `"`))
	if k := word(code); k != "" {
		return k
	}
	if n, err := strconv.Atoi(code); err == nil && status == 0 {
		status = n
	}
	if clientFault := status == 0 || status >= 400 && status < 500; clientFault && TooLong(message) {
		return model.ContextLength
	}
	if status >= 400 {
		return Status(status)
	}
	return cmp.Or(word(d.Type), model.Unavailable)
}

// word maps the words used as type or code, and returns "" for those it does not know.
func word(s string) model.Kind {
	switch s {
	case "rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error":
		return model.Throttled
	case "overloaded_error", "engine_overloaded", "engine_overloaded_error", "slow_down":
		return model.Overloaded
	case "context_length_exceeded", "exceed_context_size_error", "request_too_large":
		return model.ContextLength
	case "authentication_error", "permission_error", "billing_error", "invalid_api_key", "insufficient_quota":
		return model.Denied
	case "invalid_request_error", "not_found_error", "model_not_found", "invalid_prompt":
		return model.Invalid
	}
	return ""
}

// Status maps an HTTP status of 400 or above.
func Status(status int) model.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return model.Denied
	case http.StatusTooManyRequests:
		return model.Throttled
	case http.StatusServiceUnavailable, 529:
		return model.Overloaded
	case http.StatusRequestEntityTooLarge:
		return model.ContextLength
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return model.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return model.Unavailable
	}
	return model.Invalid
}

// TooLong reports whether the provider's words say that the conversation does not fit the model's context.
func TooLong(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"prompt is too long", "input is too long", "maximum context length", "exceed context limit", "context window",
		"context length", "available context size", "too many input tokens", "input token count", "maximum number of tokens allowed",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// RetryAfter returns what the provider asks to wait: the header Retry-After in seconds or as a date, or Retry-After-Ms.
// It is 0 when there is none, or it is nonsense or past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	var d time.Duration
	value := strings.TrimSpace(h.Get("Retry-After"))
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = scale(ms, time.Millisecond, most)
	} else if s, err := strconv.ParseFloat(value, 64); err == nil {
		d = scale(s, time.Second, most)
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return max(0, min(d, most))
}

// scale avoids the overflow of absurd numbers; NaN is 0.
func scale(n float64, unit, most time.Duration) time.Duration {
	switch {
	case n >= float64(most/unit):
		return most
	case n > 0:
		return time.Duration(n * float64(unit))
	}
	return 0
}
