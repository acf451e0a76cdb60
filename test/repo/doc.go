// Package repo guards the repository itself: what its packages say of themselves, what they may link, what its files
// may contain. Each rule is a function over a tree of files or a list of packages that returns the problems it finds,
// and each is also shown a planted case, so that a rule which has gone blind is noticed.
package repo
