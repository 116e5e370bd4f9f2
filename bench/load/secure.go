package main

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	scramSHA512     = "SCRAM-SHA-512"
	scramSHA512Key  = 2 // in requests
	scramIterations = 4096
	scramSaltBytes  = 16
)

// security is how a connection shows who it is, and has the broker show who that is.
type security struct {
	authority    string // a file with the certificate that vouches for the broker; empty: no TLS
	user         string // empty: nobody asks
	passwordFile string // a password does not belong on a command line
	mechanism    string
}

// securityFlags are those of a command that can speak to a broker behind TLS and SASL.
func securityFlags(flags *flag.FlagSet) *security {
	s := &security{}
	flags.StringVar(&s.authority, "authority", "", "certificate of who vouches for the broker; none: no TLS")
	flags.StringVar(&s.user, "user", "", "who logs in; none: nobody does")
	flags.StringVar(&s.passwordFile, "password-file", "", "where the user's password is")
	flags.StringVar(&s.mechanism, "mechanism", scramSHA512, "or PLAIN")
	return s
}

// dial connects, settles TLS and logs in, as far as these are wanted.
func (s *security) dial(addr string) (*conn, error) {
	if s.authority == "" {
		connection, err := dial(addr)
		if err != nil {
			return nil, err
		}
		return s.loggedIn(connection)
	}
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	encrypted, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return nil, err
	}
	return s.loggedIn(newConn(encrypted))
}

func (s *security) loggedIn(connection *conn) (*conn, error) {
	if s.user == "" {
		return connection, nil
	}
	if err := s.login(connection); err != nil {
		connection.Close()
		return nil, err
	}
	return connection, nil
}

// tlsConfig trusts nobody but the authority. Go begins a connection with many small records, so that a browser can show
// something early; other clients of Kafka do not, and the broker is not to be measured by that.
func (s *security) tlsConfig() (*tls.Config, error) {
	pem, err := os.ReadFile(s.authority)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no certificate", s.authority)
	}
	return &tls.Config{RootCAs: trusted, DynamicRecordSizingDisabled: true}, nil
}

// spoken is the version of TLS and the cipher suite of a connection.
func spoken(connection net.Conn) string {
	encrypted, ok := connection.(*tls.Conn)
	if !ok {
		return "no TLS"
	}
	state := encrypted.ConnectionState()
	return tls.VersionName(state.Version) + ", " + tls.CipherSuiteName(state.CipherSuite)
}

func (s *security) login(c *conn) error {
	mechanism, err := s.saslMechanism()
	if err != nil {
		return err
	}
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version = 1
	handshake.Mechanism = mechanism.Name()
	answer, err := c.ask(handshake)
	if err != nil {
		return err
	}
	if code := answer.(*kmsg.SASLHandshakeResponse).ErrorCode; code != noError {
		return fmt.Errorf("SaslHandshake with %s: error %d", mechanism.Name(), code)
	}
	session, words, err := mechanism.Authenticate(context.Background(), "")
	for isDone := false; !isDone && err == nil; {
		request := kmsg.NewPtrSASLAuthenticateRequest()
		request.Version = 2
		request.SASLAuthBytes = words
		answer, err = c.ask(request)
		if err != nil {
			return err
		}
		heard := answer.(*kmsg.SASLAuthenticateResponse)
		if heard.ErrorCode != noError {
			return fmt.Errorf("SaslAuthenticate of %s: error %d", s.user, heard.ErrorCode)
		}
		isDone, words, err = session.Challenge(heard.SASLAuthBytes)
	}
	return err
}

func (s *security) password() (string, error) {
	content, err := os.ReadFile(s.passwordFile)
	return strings.TrimSpace(string(content)), err
}

func (s *security) saslMechanism() (sasl.Mechanism, error) {
	password, err := s.password()
	if err != nil {
		return nil, err
	}
	switch s.mechanism {
	case "PLAIN":
		return plain.Auth{User: s.user, Pass: password}.AsMechanism(), nil
	case scramSHA512:
		return scram.Auth{User: s.user, Pass: password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("no mechanism is called %s", s.mechanism)
}

// makeUser has the broker keep a user's salted password, and waits until he can log in.
func makeUser(admin *conn, user *security) error {
	password, err := user.password()
	if err != nil {
		return err
	}
	upsertion := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	upsertion.Name, upsertion.Mechanism, upsertion.Iterations = user.user, scramSHA512Key, scramIterations
	upsertion.Salt = make([]byte, scramSaltBytes)
	rand.Read(upsertion.Salt)
	upsertion.SaltedPassword, err = pbkdf2.Key(sha512.New, password, upsertion.Salt, scramIterations, sha512.Size)
	if err != nil {
		return err
	}
	request := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	request.Upsertions = append(request.Upsertions, upsertion)
	answer, err := admin.ask(request)
	if err != nil {
		return err
	}
	for _, result := range answer.(*kmsg.AlterUserSCRAMCredentialsResponse).Results {
		if result.ErrorCode != noError {
			return fmt.Errorf("AlterUserScramCredentials: error %d", result.ErrorCode)
		}
	}
	deadline := time.Now().Add(startPatience)
	for {
		connection, err := user.dial(admin.RemoteAddr().String())
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
