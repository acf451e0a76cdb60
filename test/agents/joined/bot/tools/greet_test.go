package tools

import "testing"

func TestGreet(t *testing.T) {
	t.Parallel()
	if got, _ := greet(t.Context(), nil, greetInput{Name: "Ada"}); got != "hello, Ada" {
		t.Errorf("got %q", got)
	}
}
