"""Real clients of other languages against `kohort serve`: they need Java, Maven, Go and Node; `make test-clients`."""
