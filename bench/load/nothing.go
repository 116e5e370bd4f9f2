package main

import (
	"crypto/tls"
	"encoding/binary"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// nothing is a server that answers each request to commit without doing anything about it. What is measured against it
// is what this client can reach on this machine; a broker that comes near is faster than the client can show.
func nothing(args []string) error {
	flags, addr := options("nothing")
	certificate := flags.String("certificate", "", "a file with a certificate and its key; none: no TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *certificate)
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{pair}, DynamicRecordSizingDisabled: true,
		})
	}
	for {
		plain, err := listener.Accept()
		if err != nil {
			return err
		}
		go answerAll(plain)
	}
}

// answerAll answers until the client goes.
func answerAll(plain net.Conn) {
	defer plain.Close()
	c := newConn(plain)
	for {
		frame, err := c.frame()
		if err != nil {
			return
		}
		c.outgoing = append(c.outgoing[:0], 0, 0, 0, 0)
		c.outgoing = append(c.outgoing, frame[4:8]...) // the correlation id
		c.outgoing = append(c.outgoing, goodAnswer...)
		binary.BigEndian.PutUint32(c.outgoing, uint32(len(c.outgoing)-frameHead))
		if _, err := c.out.Write(c.outgoing); err != nil {
			return
		}
		if c.arrived() {
			continue
		}
		if err := c.out.Flush(); err != nil {
			return
		}
	}
}

// goodAnswer is what a broker says to a commit that it has done, behind the correlation id.
var goodAnswer = func() []byte {
	request := commitRequest("")
	answer := request.ResponseKind().(*kmsg.OffsetCommitResponse)
	topic := kmsg.NewOffsetCommitResponseTopic()
	topic.Topic = commitTopic
	for _, asked := range request.Topics[0].Partitions {
		partition := kmsg.NewOffsetCommitResponseTopicPartition()
		partition.Partition = asked.Partition
		topic.Partitions = append(topic.Partitions, partition)
	}
	answer.Topics = append(answer.Topics, topic)
	return answer.AppendTo([]byte{0}) // no tags in the header
}()
