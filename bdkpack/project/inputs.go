package project

import "errors"

// Inputs are the files that a workspace's program is built from. Paths are absolute and sorted.
type Inputs struct {
	// Dirs are directories whose entries and Go sources matter, without what is below them: the agents' folders and
	// every package of the main module, or of a module replaced by a local folder, that the program imports.
	Dirs []string `json:"dirs"`

	// Files matter as a whole: go.mod, go.sum, go.work, embedded files.
	Files []string `json:"files"`
}

// Fingerprint returns a hash of the contents of the inputs. It changes whenever the program or its diagnostics may.
func (in Inputs) Fingerprint() (string, error) { return "", errors.New("not written yet") }
