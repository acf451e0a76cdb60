package sqlitex

import (
	"errors"
	"fmt"
)

const (
	applicationID = 0x42444b31 // tells our files from those of other programs
	layoutVersion = 1          // of the table schema_versions, kept in PRAGMA user_version
)

// Schema is the tables of one package. Step i takes the schema from version i to i+1: a released step is never changed, a new
// version is a new step.
type Schema struct {
	Name  string   // unique in the file
	Steps []string // SQL, each possibly several statements
}

// identify checks that the file is empty or ours, and not of a newer layout.
func identify(c *conn) error {
	// One transaction, because another process may be setting the file up.
	if _, err := c.exec("BEGIN", nil); err != nil {
		return err
	}
	defer func() { _, _ = c.exec("ROLLBACK", nil) }()
	var id, layout, tables int64
	err := errors.Join(
		scanOne(c, "PRAGMA application_id", &id),
		scanOne(c, "PRAGMA user_version", &layout),
		scanOne(c, "SELECT count(*) FROM sqlite_schema", &tables),
	)
	switch {
	case err != nil:
		return err
	case id == 0 && layout == 0 && tables == 0:
		return nil
	case id != applicationID:
		return fmt.Errorf("%w: %s belongs to another program", ErrBadFile, c.path)
	case layout > layoutVersion:
		return fmt.Errorf("%w: its layout is version %d, this program knows %d%s", ErrNewer, layout, layoutVersion, writtenBy(c))
	}
	return nil
}

// migrate brings every schema to its newest version, in one transaction. When nothing is to be done it only reads.
func migrate(c *conn, opt Options) error {
	if done, err := upToDate(c, opt.Schemas); done || err != nil {
		return err
	}
	if _, err := c.exec("BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	err := applyAll(c, opt)
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, endErr := c.exec(end, nil)
	return errors.Join(err, endErr)
}

func upToDate(c *conn, schemas []Schema) (bool, error) {
	var tables int64
	if err := scanOne(c, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_versions'", &tables); err != nil || tables == 0 {
		return false, err
	}
	for _, s := range schemas {
		version, err := schemaVersion(c, s)
		if err != nil || version < len(s.Steps) {
			return false, err
		}
	}
	return true, nil
}

func applyAll(c *conn, opt Options) error {
	// Another process may have done it while this one waited for its turn, so all is looked up again.
	base := fmt.Sprintf(`PRAGMA application_id=%d; PRAGMA user_version=%d;
CREATE TABLE IF NOT EXISTS schema_versions(name TEXT PRIMARY KEY, version INTEGER NOT NULL, program TEXT NOT NULL) STRICT`, applicationID, layoutVersion)
	if err := c.raw.Exec(base); err != nil {
		return c.wrap(err, base)
	}
	for _, s := range opt.Schemas {
		version, err := schemaVersion(c, s)
		if err != nil {
			return err
		}
		if version == len(s.Steps) {
			continue
		}
		for i, step := range s.Steps[version:] {
			if err := c.raw.Exec(step); err != nil {
				return fmt.Errorf("migrating schema %q to version %d: %w", s.Name, version+i+1, c.wrap(err, step))
			}
		}
		const record = `INSERT INTO schema_versions(name, version, program) VALUES(?, ?, ?)
ON CONFLICT(name) DO UPDATE SET version = excluded.version, program = excluded.program`
		if _, err := c.exec(record, []any{s.Name, len(s.Steps), opt.Program}); err != nil {
			return err
		}
	}
	return nil
}

// schemaVersion returns the version of s in the file, 0 if it is not there, and ErrNewer if s does not know it.
func schemaVersion(c *conn, s Schema) (int, error) {
	var version int
	var program string
	err := c.query("SELECT version, program FROM schema_versions WHERE name = ?", func(row Row) error {
		return row.Scan(&version, &program)
	}, []any{s.Name})
	if err != nil {
		return 0, err
	}
	if version > len(s.Steps) {
		if program == "" {
			program = "a newer version of this program"
		}
		return 0, fmt.Errorf("%w: schema %q is version %d, this program knows %d: run %s or newer", ErrNewer, s.Name, version, len(s.Steps), program)
	}
	return version, nil
}

// writtenBy says which program made a file whose layout is not understood, as far as that can be found out.
func writtenBy(c *conn) string {
	var program string
	if err := scanOne(c, "SELECT max(program) FROM schema_versions", &program); err != nil || program == "" {
		return ""
	}
	return fmt.Sprintf(": run %s or newer", program)
}

func scanOne(c *conn, query string, dest ...any) error {
	return c.query(query, func(row Row) error { return row.Scan(dest...) }, nil)
}
