// Package greeting words greetings.
package greeting

// For returns the greeting for a person.
func For(name string) string { return "hello, " + name }
