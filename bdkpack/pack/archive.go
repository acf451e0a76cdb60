package pack

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file to put into an archive.
type entry struct {
	name string // in the archive, with slashes
	path string // where it is
	mode fs.FileMode
}

// writeArchive writes files into a zip file in the given order, at once or not at all, and returns the hash and size of it.
// They depend on names, modes and contents alone.
func writeArchive(path string, files []entry) (sum string, size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".archive-*")
	if err != nil {
		return "", 0, fmt.Errorf("writing the archive: %w", err)
	}
	hash := sha256.New()
	counted := &counter{w: io.MultiWriter(f, hash)}
	err = errors.Join(zipTo(counted, files), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", 0, fmt.Errorf("writing the archive: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return hex.EncodeToString(hash.Sum(nil)), counted.n, nil
}

func zipTo(w io.Writer, files []entry) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		if err := zipFile(z, f); err != nil {
			return fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	return z.Close()
}

func zipFile(z *zip.Writer, f entry) error {
	header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(f.mode)
	to, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	from, err := os.Open(f.path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, from.Close())
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
