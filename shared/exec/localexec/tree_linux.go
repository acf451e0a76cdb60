package localexec

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns those of a command: it has a session of its own, and its first process does not outlive this one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// tree finds the processes of a command.
type tree struct {
	root  int
	own   []byte         // a path that is in the environment of each, unless it was cleared
	begin uint64         // none of them began before
	alone bool           // what else this process is the parent of is the command's too
	known map[int]uint64 // process ids, and when each began
	page  int64
}

// usage is what a command has at the moment.
type usage struct {
	alive  []int // process ids
	memory int64 // bytes, without what is shared
	unsure bool  // there is something that may turn out to be alive in a moment
}

// stat is what is known of any process.
type stat struct {
	pid, parent, session int
	threads              int
	begin                uint64 // in ticks since the machine's start
	dead                 bool
}

func newTree(root int, own string, alone bool) *tree {
	t := &tree{root: root, own: []byte(own), alone: alone, known: map[int]uint64{}, page: int64(os.Getpagesize())}
	if s, ok := readStat(root); ok {
		t.begin = s.begin
		t.known[root] = s.begin
	}
	return t
}

// look finds what is alive. Of what has died it buries what nobody else would.
func (t *tree) look() (u usage) {
	found, unsure := t.find()
	u.unsure = unsure
	clear(t.known)
	for _, s := range found {
		switch {
		case !s.dead:
			t.known[s.pid] = s.begin
			u.alive = append(u.alive, s.pid)
			u.memory += t.memory(s.pid)
		case s.parent == os.Getpid() && s.pid != t.root: // an orphan, where this process takes the place of init
			_, _ = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
		default:
			t.known[s.pid] = s.begin
		}
	}
	return u
}

// find returns the processes of the command: those that were so before, and all that have the session, the parent or the environment
// of one. It is unsure of others that are about to begin another program: their environment is empty for a moment.
func (t *tree) find() (found []stat, unsure bool) {
	var others []stat
	parents, sessions := map[int]bool{os.Getpid(): t.alone}, map[int]bool{t.root: true}
	take := func(s stat) {
		found = append(found, s)
		if !s.dead && s.session > 0 { // the session of one that is about to be gone reads as 0, which others have
			parents[s.pid], sessions[s.session] = true, true
		}
	}
	for _, s := range t.all() {
		if begin, ok := t.known[s.pid]; ok && begin == s.begin || s.session == t.root {
			take(s)
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/environ")
		if bytes.Contains(env, t.own) {
			take(s)
			continue
		}
		const kernel = 2 // the parent of its threads
		unsure = unsure || err == nil && len(env) == 0 && !s.dead && s.parent != kernel
		others = append(others, s)
	}
	for n := -1; n != len(found); {
		n = len(found)
		others = slices.DeleteFunc(others, func(s stat) bool {
			related := parents[s.parent] || sessions[s.session]
			if related {
				take(s)
			}
			return related
		})
	}
	return found, unsure
}

// adopt has processes that lose their parent become children of this one.
func adopt() {
	const setChildSubreaper = 36                                             // PR_SET_CHILD_SUBREAPER
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // where it cannot, they are found as elsewhere
}

// KillLeft kills what commands have left whose runner's process was killed: processes that have a path below dir, the Options.Temp of
// that runner, in their environment. It does nothing on other systems than Linux.
func KillLeft(dir string) {
	const rounds = 8 // against those that start others meanwhile
	own := []byte(filepath.Clean(dir) + "/")
	for range rounds {
		left := slices.DeleteFunc(processes(), func(s stat) bool {
			env, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/environ")
			return err != nil || s.dead || s.pid == os.Getpid() || !bytes.Contains(env, own)
		})
		if len(left) == 0 {
			return
		}
		for _, s := range left {
			_ = syscall.Kill(s.pid, syscall.SIGKILL)
		}
	}
}

// all returns the processes that may be the command's.
func (t *tree) all() []stat {
	all := processes()
	return slices.DeleteFunc(all, func(s stat) bool { return s.begin < t.begin || s.pid == os.Getpid() })
}

// threads returns how many this process's user has, or 0 if the system does not limit them for that user.
func threads() (n int) {
	me := os.Getuid()
	if me == 0 {
		return 0
	}
	for _, s := range processes() {
		var dir syscall.Stat_t
		if syscall.Stat("/proc/"+strconv.Itoa(s.pid), &dir) == nil && int(dir.Uid) == me {
			n += s.threads
		}
	}
	return n
}

// processes returns all there are.
func processes() (all []stat) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()                //nolint:errcheck // only read
	names, _ := dir.Readdirnames(-1) // as many as there are
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if s, ok := readStat(pid); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// memory returns the bytes that a process shares with no file.
func (t *tree) memory(pid int) int64 {
	var resident, shared int64
	if f := fields("/proc/"+strconv.Itoa(pid)+"/statm", ""); len(f) > 2 {
		resident, _ = strconv.ParseInt(f[1], 10, 64)
		shared, _ = strconv.ParseInt(f[2], 10, 64)
	}
	return (resident - shared) * t.page
}

// readStat reads what the system says of a process.
func readStat(pid int) (s stat, ok bool) {
	f := fields("/proc/"+strconv.Itoa(pid)+"/stat", ") ") // before is its name
	const state, parent, session, threads, begin = 0, 1, 3, 17, 19
	if len(f) <= begin {
		return s, false
	}
	s = stat{pid: pid, dead: f[state] == "Z" || f[state] == "X"}
	s.parent, _ = strconv.Atoi(f[parent])
	s.session, _ = strconv.Atoi(f[session])
	s.threads, _ = strconv.Atoi(f[threads])
	s.begin, _ = strconv.ParseUint(f[begin], 10, 64)
	return s, true
}

// fields returns the words of a file behind the last separator.
func fields(path, separator string) []string {
	data, err := os.ReadFile(path) //nolint:gosec // in /proc
	if err != nil {
		return nil
	}
	text := string(data)
	if i := strings.LastIndex(text, separator); separator != "" && i >= 0 {
		text = text[i+len(separator):]
	}
	return strings.Fields(text)
}
