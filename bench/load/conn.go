package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	bufferBytes = 1 << 14
	frameHead   = 4
	patience    = 60 * time.Second
)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("load"))

// conn is one connection. Its answers come in the order of its requests. One goroutine uses it at a time.
type conn struct {
	net.Conn
	in       *bufio.Reader
	out      *bufio.Writer
	outgoing []byte
	incoming []byte
	sent     int32
	received int32
}

func dial(addr string) (*conn, error) {
	plain, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return newConn(plain), nil
}

func newConn(plain net.Conn) *conn {
	return &conn{
		Conn: plain,
		in:   bufio.NewReaderSize(plain, bufferBytes),
		out:  bufio.NewWriterSize(plain, bufferBytes),
	}
}

// put writes a request to the buffer; it leaves when the buffer is flushed.
func (c *conn) put(request kmsg.Request) error {
	c.outgoing = formatter.AppendRequest(c.outgoing[:0], request, c.sent)
	c.sent++
	_, err := c.out.Write(c.outgoing)
	return err
}

// await blocks until a whole answer, no larger than the buffer, has arrived.
func (c *conn) await() error {
	head, err := c.in.Peek(frameHead)
	if err != nil {
		return err
	}
	_, err = c.in.Peek(frameHead + int(binary.BigEndian.Uint32(head)))
	return err
}

// arrived tells whether there is another whole answer that needs no waiting.
func (c *conn) arrived() bool {
	if c.in.Buffered() < frameHead {
		return false
	}
	head, err := c.in.Peek(frameHead)
	return err == nil && c.in.Buffered() >= frameHead+int(binary.BigEndian.Uint32(head))
}

// frame reads what comes next, whole; it is valid until the next one is read.
func (c *conn) frame() ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size < 4 {
		return nil, fmt.Errorf("a frame of %d bytes", size)
	}
	if cap(c.incoming) < size {
		c.incoming = make([]byte, size)
	}
	c.incoming = c.incoming[:size]
	_, err := io.ReadFull(c.in, c.incoming)
	return c.incoming, err
}

// take reads the next answer, without its correlation id.
func (c *conn) take() ([]byte, error) {
	frame, err := c.frame()
	if err != nil {
		return nil, err
	}
	if id := int32(binary.BigEndian.Uint32(frame)); id != c.received {
		return nil, fmt.Errorf("answer %d came when %d was due", id, c.received)
	}
	c.received++
	return frame[4:], nil
}

// understand fills the answer from its bytes.
func understand(body []byte, answer kmsg.Response) error {
	// The header of a flexible answer ends with tags, of which there are none; ApiVersions never has them.
	if answer.IsFlexible() && answer.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			return fmt.Errorf("%s: an answer with tags in its header", kmsg.NameForKey(answer.Key()))
		}
		body = body[1:]
	}
	return answer.ReadFrom(body)
}

// ask sends one request and waits for its answer.
func (c *conn) ask(request kmsg.Request) (kmsg.Response, error) {
	if err := c.put(request); err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	body, err := c.take()
	if err != nil {
		return nil, err
	}
	answer := request.ResponseKind()
	return answer, understand(body, answer)
}
