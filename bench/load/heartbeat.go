package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	loadSession   = 10 * time.Second
	loadHeartbeat = 3 * time.Second
)

// heartbeat keeps many groups alive over connections that their members share: each member heartbeats every 3 s under a
// session timeout of 10 s, and any answer but "no error" ends the run. At the end each group must still be whole.
//
// A join is answered when its group is complete, and holds up its connection until then. So members join over
// connections of their own, all at once, and heartbeat over the shared ones from then on.
//
// It prints two objects: one when all groups are complete and the measurement begins, one at the end.
func heartbeat(args []string) error {
	flags, addr := options("heartbeat")
	connections := flags.Int("conns", 2000, "connections")
	groups := flags.Int("groups", 1000, "groups")
	members := flags.Int("members", 3, "members of each group")
	length := flags.Duration("for", 60*time.Second, "time of the measurement")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conns, err := dialAll(*addr, *connections)
	if err != nil {
		return err
	}
	if err := makeTopic(conns[0], groupTopic, 2**members); err != nil {
		return err
	}
	for number := range *groups {
		if err := awaitCoordinator(conns[0], loadGroup(number)); err != nil {
			return err
		}
	}
	load := newHeartbeatLoad(*addr, conns, *groups, *members)
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- together(*groups, load.live) }()
	select {
	case <-load.assembled:
	case err := <-ended:
		return err
	}
	if err := print(map[string]any{"assembled_seconds": time.Since(began).Seconds()}); err != nil {
		return err
	}
	used := processorSeconds()
	load.isMeasured.Store(true)
	time.AfterFunc(*length, load.stop)
	if err := <-ended; err != nil {
		return err
	}
	used = processorSeconds() - used
	if err := load.checkGroups(conns[0]); err != nil {
		return err
	}
	all := merged(load.measured)
	return print(map[string]any{
		"rate":         float64(len(all)) / length.Seconds(),
		"p50_ms":       all.at(0.50),
		"p99_ms":       all.at(0.99),
		"max_ms":       all.at(1),
		"answers":      len(all),
		"client_cores": used / length.Seconds(),
	})
}

// heartbeatLoad is what the members of all groups share.
type heartbeatLoad struct {
	addr       string
	shared     []sharedConn
	groups     int
	members    int
	waiting    sync.WaitGroup // for groups that are not complete
	assembled  chan struct{}  // closed when all are
	stopped    chan struct{}  // closed at the end, or when something went wrong
	stop       func()
	isMeasured atomic.Bool
	measured   []latencies // of each member
}

type sharedConn struct {
	*conn
	sync.Mutex
}

func newHeartbeatLoad(addr string, conns []*conn, groups, members int) *heartbeatLoad {
	load := &heartbeatLoad{
		addr:      addr,
		shared:    make([]sharedConn, len(conns)),
		groups:    groups,
		members:   members,
		assembled: make(chan struct{}),
		stopped:   make(chan struct{}),
		measured:  make([]latencies, groups*members),
	}
	load.stop = sync.OnceFunc(func() { close(load.stopped) })
	for number := range conns {
		load.shared[number].conn = conns[number]
	}
	load.waiting.Add(groups)
	go func() {
		load.waiting.Wait()
		close(load.assembled)
	}()
	return load
}

func loadGroup(number int) string {
	return fmt.Sprintf("load-%d", number)
}

// live is the life of one group.
func (l *heartbeatLoad) live(number int) error {
	conns, err := dialAll(l.addr, l.members)
	if err != nil {
		l.stop()
		return err
	}
	members, _, err := assemble(loadGroup(number), conns, loadSession)
	for _, connection := range conns {
		connection.Close()
	}
	if err != nil {
		l.stop()
		return err
	}
	l.waiting.Done()
	return together(l.members, func(which int) error {
		err := l.keepAlive(members[which], number*l.members+which)
		if err != nil {
			l.stop()
		}
		return err
	})
}

// keepAlive heartbeats until the end. The first comes at any time, so that members do not heartbeat in step.
func (l *heartbeatLoad) keepAlive(m *member, number int) error {
	connection := &l.shared[number%len(l.shared)]
	due := time.Now().Add(rand.N(loadHeartbeat))
	for {
		select {
		case <-l.stopped:
			return nil
		case <-time.After(time.Until(due)):
		}
		due = due.Add(loadHeartbeat)
		began := time.Now()
		connection.Lock()
		code, err := m.heartbeat(connection.conn)
		connection.Unlock()
		if err != nil {
			return err
		}
		if code != noError {
			return fmt.Errorf("Heartbeat of %s in %s: error %d", m.id, m.group, code)
		}
		if l.isMeasured.Load() {
			l.measured[number] = append(l.measured[number], time.Since(began))
		}
	}
}

// checkGroups finds every group stable and with all of its members.
func (l *heartbeatLoad) checkGroups(c *conn) error {
	for number := range l.groups {
		request := kmsg.NewPtrDescribeGroupsRequest()
		request.Version = 5
		request.Groups = []string{loadGroup(number)}
		answer, err := c.ask(request)
		if err != nil {
			return err
		}
		found := answer.(*kmsg.DescribeGroupsResponse).Groups[0]
		if found.ErrorCode != noError || found.State != "Stable" || len(found.Members) != l.members {
			return fmt.Errorf("%s: error %d, state %s, %d members", found.Group, found.ErrorCode, found.State, len(found.Members))
		}
	}
	return nil
}
