package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	offsetCommit = 8
	joinGroup    = 11
	// sessionTimeout is short against the lives of a broker: a member that could not say goodbye is soon forgotten.
	sessionTimeout = 500 * time.Millisecond
)

// member commits for what it owns.
type member struct {
	where  place
	group  string
	name   string
	client *kgo.Client
	// sent counts commits that went out: one that was sent twice may have been taken the first time.
	sent atomic.Int32

	mu     sync.Mutex
	joined float64
	owned  []int32
}

// OnBrokerWrite counts commits as they go out, and notes when it was asked to join.
func (m *member) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	switch key {
	case offsetCommit:
		m.sent.Add(1)
	case joinGroup:
		m.mu.Lock()
		m.joined = now()
		m.mu.Unlock()
	}
}

func (w place) join(group, name string) *member {
	m := &member{where: w, group: group, name: name}
	m.client = must(kgo.NewClient(w.options(
		kgo.ClientID(name),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(w.topic),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(sessionTimeout/5),
		kgo.SessionTimeout(sessionTimeout),
		kgo.RebalanceTimeout(sessionTimeout),
		kgo.WithHooks(m),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.revoked),
	)...))
	return m
}

// assigned with a balancer that gives everything back before a rebalance: this is the whole share.
func (m *member) assigned(_ context.Context, client *kgo.Client, got map[string][]int32) {
	id, generation := client.GroupMetadata()
	m.mu.Lock()
	m.owned = slices.Clone(got[m.where.topic])
	joined := m.joined
	m.mu.Unlock()
	tell(line{
		Event: "owns", Group: m.group, Member: id, Generation: generation, Partitions: got[m.where.topic],
		Began: joined, Ended: now(),
	})
}

func (m *member) revoked(context.Context, *kgo.Client, map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = nil
}

// stay commits until everything is over, and reads what is there every so often.
func (w place) stay(over context.Context, group, name string) {
	m := w.join(group, name)
	defer m.client.Close()
	reader := must(kgo.NewClient(w.options()...))
	defer reader.Close()
	for turn := 1; wait(over, pause); turn++ {
		m.commit()
		if turn%readEvery == 0 {
			w.read(reader, group)
		}
	}
}

// comeAndGo joins, commits for a while and leaves: the group has a new generation each time.
func (w place) comeAndGo(over context.Context, group, name string) {
	for wait(over, pause) {
		m := w.join(group, name)
		leaving := time.After(time.Duration(1000+rand.IntN(4000)) * time.Millisecond)
		for isHere := true; isHere && wait(over, pause); {
			m.commit()
			select {
			case <-leaving:
				isHere = false
			default:
			}
		}
		m.client.Close()
	}
}

// commit once, for some or all of what it owns.
func (m *member) commit() {
	m.mu.Lock()
	owned := slices.Clone(m.owned)
	m.mu.Unlock()
	if len(owned) == 0 {
		return
	}
	begun := begin(m.group, owned[:1+rand.IntN(len(owned))])
	asked := map[int32]kgo.EpochOffset{}
	for partition, offset := range begun.offsets {
		asked[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var generation int32
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		generation = request.Generation
		return nil
	})
	sent, outcome := m.sent.Load(), unknown
	m.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.where.topic: asked},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			if err == nil {
				outcome = judge(answer, m.sent.Load()-sent > 1)
			}
		})
	begun.end(outcome, generation)
}

// judge: a commit is answered as a whole, well or not.
func judge(answer *kmsg.OffsetCommitResponse, sentTwice bool) string {
	refusals, all := 0, 0
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			all++
			if partition.ErrorCode != 0 {
				refusals++
			}
		}
	}
	switch {
	case all > 0 && refusals == 0:
		return ok
	case all > 0 && refusals == all && !sentTwice:
		return failed
	}
	return unknown
}
