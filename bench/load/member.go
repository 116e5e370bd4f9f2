package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	protocolType = "consumer"
	protocol     = "range"
	groupTopic   = "bench-groups"
	// eagerHeartbeat is how often a member asks for news while its group is not complete yet.
	eagerHeartbeat = 100 * time.Millisecond
)

// member is one member of a classic group.
type member struct {
	group      string
	id         string
	generation int32
	session    time.Duration
}

// assigned says that a member has its part, as of a generation with so many members.
type assigned struct {
	number     int
	generation int32
	members    int
	at         time.Time
	err        error
}

// assemble makes one member on each connection, and returns when all of them are assigned in the same generation, with
// the time of the last SyncGroup answer. Until then members heartbeat often, and join again when they are told to.
func assemble(group string, conns []*conn, session time.Duration) ([]*member, time.Time, error) {
	members := make([]*member, len(conns))
	reports := make(chan assigned)
	complete := make(chan struct{})
	done := make(chan struct{}, len(conns))
	for number, connection := range conns {
		members[number] = &member{group: group, session: session}
		go func() {
			members[number].belong(connection, number, reports, complete)
			done <- struct{}{}
		}()
	}
	newest := make(map[int]assigned)
	var failure error
	for failure == nil && !isComplete(newest, len(conns)) {
		report := <-reports
		newest[report.number] = report
		failure = report.err
	}
	close(complete)
	for range conns {
		<-done
	}
	var last time.Time
	for _, report := range newest {
		if report.at.After(last) {
			last = report.at
		}
	}
	return members, last, failure
}

func isComplete(newest map[int]assigned, wanted int) bool {
	generations := make(map[int32]bool)
	for _, report := range newest {
		if report.members > 0 && report.members != wanted {
			return false // the leader has seen an earlier, smaller group
		}
		generations[report.generation] = true
	}
	return len(newest) == wanted && len(generations) == 1
}

// belong joins, syncs and heartbeats until the group is complete.
func (m *member) belong(c *conn, number int, reports chan<- assigned, complete <-chan struct{}) {
	report := func(news assigned) {
		news.number, news.at = number, time.Now()
		select {
		case reports <- news:
		case <-complete:
		}
	}
	for {
		size, err := m.joinAndSync(c)
		if err != nil {
			report(assigned{err: err})
			return
		}
		report(assigned{generation: m.generation, members: size})
		for stays := true; stays; {
			select {
			case <-complete:
				return
			case <-time.After(eagerHeartbeat):
			}
			code, err := m.heartbeat(c)
			if err == nil && code != noError && code != rebalanceInProgress {
				err = fmt.Errorf("Heartbeat of %s in %s: error %d", m.id, m.group, code)
			}
			if err != nil {
				report(assigned{err: err})
				return
			}
			stays = code == noError
		}
	}
}

// joinAndSync returns when the member has its assignment. The leader learns how many members there are; others see 0.
func (m *member) joinAndSync(c *conn) (int, error) {
	for {
		joined, err := m.join(c)
		if err != nil {
			return 0, err
		}
		code, err := m.sync(c, joined)
		if err != nil || code == noError {
			return len(joined.Members), err
		}
		if code != rebalanceInProgress {
			return 0, fmt.Errorf("SyncGroup of %s: error %d", m.group, code)
		}
	}
}

func (m *member) join(c *conn) (*kmsg.JoinGroupResponse, error) {
	request := kmsg.NewPtrJoinGroupRequest()
	request.Version = 7
	request.Group = m.group
	request.SessionTimeoutMillis = int32(m.session.Milliseconds())
	request.RebalanceTimeoutMillis = 60_000
	request.ProtocolType = protocolType
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{groupTopic}
	offered := kmsg.NewJoinGroupRequestProtocol()
	offered.Name, offered.Metadata = protocol, subscription.AppendTo(nil)
	request.Protocols = append(request.Protocols, offered)
	for {
		request.MemberID = m.id
		answer, err := c.ask(request)
		if err != nil {
			return nil, err
		}
		joined := answer.(*kmsg.JoinGroupResponse)
		m.id, m.generation = joined.MemberID, joined.Generation
		switch joined.ErrorCode {
		case noError:
			return joined, nil
		case memberIDRequired:
		default:
			return nil, fmt.Errorf("JoinGroup of %s: error %d", m.group, joined.ErrorCode)
		}
	}
}

// sync gives, if this is the leader, two partitions to each member.
func (m *member) sync(c *conn, joined *kmsg.JoinGroupResponse) (int16, error) {
	request := kmsg.NewPtrSyncGroupRequest()
	request.Version = 5
	request.Group, request.MemberID, request.Generation = m.group, m.id, m.generation
	request.ProtocolType, request.Protocol = kmsg.StringPtr(protocolType), kmsg.StringPtr(protocol)
	for number, other := range joined.Members {
		partitions := kmsg.NewConsumerMemberAssignmentTopic()
		partitions.Topic, partitions.Partitions = groupTopic, []int32{int32(2 * number), int32(2*number + 1)}
		assignment := kmsg.NewConsumerMemberAssignment()
		assignment.Topics = append(assignment.Topics, partitions)
		given := kmsg.NewSyncGroupRequestGroupAssignment()
		given.MemberID, given.MemberAssignment = other.MemberID, assignment.AppendTo(nil)
		request.GroupAssignment = append(request.GroupAssignment, given)
	}
	answer, err := c.ask(request)
	if err != nil {
		return noError, err
	}
	synced := answer.(*kmsg.SyncGroupResponse)
	if synced.ErrorCode == noError && len(synced.MemberAssignment) == 0 {
		return noError, fmt.Errorf("SyncGroup of %s: no assignment", m.group)
	}
	return synced.ErrorCode, nil
}

func (m *member) heartbeat(c *conn) (int16, error) {
	request := kmsg.NewPtrHeartbeatRequest()
	request.Version = 4
	request.Group, request.MemberID, request.Generation = m.group, m.id, m.generation
	answer, err := c.ask(request)
	if err != nil {
		return noError, err
	}
	return answer.(*kmsg.HeartbeatResponse).ErrorCode, nil
}

func (m *member) leave(c *conn) error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Version = 3
	request.Group = m.group
	self := kmsg.NewLeaveGroupRequestMember()
	self.MemberID = m.id
	request.Members = append(request.Members, self)
	answer, err := c.ask(request)
	if err != nil {
		return err
	}
	left := answer.(*kmsg.LeaveGroupResponse)
	if left.ErrorCode != noError {
		return fmt.Errorf("LeaveGroup of %s: error %d", m.group, left.ErrorCode)
	}
	return nil
}
