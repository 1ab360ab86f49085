// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// What `body` writes.
private func written(_ body: (inout ByteQueue) -> Void) -> String {
    var queue = ByteQueue()
    body(&queue)
    return queue.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
}

@Suite("Requests as they are written")
struct RequestWriterTests {
    @Test("a head is written line by line")
    func head() {
        let text = written { queue in
            #expect(RequestWriter.requestLine(latin1("M-SEARCH").span, latin1("/a%20b?c=d").span, to: &queue))
            #expect(RequestWriter.line(latin1("Host: a.example").span, to: &queue))
            #expect(RequestWriter.emptyField(latin1("X-Empty").span, to: &queue))
            RequestWriter.endOfHead(to: &queue)
        }
        #expect(text == "M-SEARCH /a%20b?c=d HTTP/1.1\r\nHost: a.example\r\nX-Empty:\r\n\r\n")
    }

    @Test(
        "a line that could be taken for two, or for another, is not written",
        arguments: [
            ("GET", ""), ("", "/"), ("GET", "/ HTTP/1.1\r\nX: y"), ("GET", "/a b"), ("GET", "/a\tb"), ("GET", "/\u{0}"),
            ("GET", "/\u{7F}"), ("GE T", "/"), ("GET\r\n", "/"), ("G\u{E9}T", "/"), ("GET:", "/"),
        ])
    func badLines(method: String, target: String) {
        var isWritten = true
        let text = written { isWritten = RequestWriter.requestLine(latin1(method).span, latin1(target).span, to: &$0) }
        #expect(!isWritten)
        #expect(text.isEmpty)
    }

    @Test(
        "a field that could be taken for two is not written",
        arguments: [
            "X: a\r\nY: b", "X: a\nb", "X: a\u{0}", "X: a\u{7F}", "X\r\nY: a", ": a", "X : a", " X: a", "X", "X;", "",
        ])
    func badFields(line: String) {
        var isWritten = true
        let text = written { isWritten = RequestWriter.line(latin1(line).span, to: &$0) }
        #expect(!isWritten)
        #expect(text.isEmpty)
    }

    @Test("a name that is no token is not written", arguments: ["", "X:", "X ", "X\r\nY", "X;"])
    func badNames(name: String) {
        var isWritten = true
        let text = written { isWritten = RequestWriter.emptyField(latin1(name).span, to: &$0) }
        #expect(!isWritten)
        #expect(text.isEmpty)
    }

    @Test(
        "a method is written as it is read",
        arguments: ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"])
    func methods(name: String) {
        let bytes = latin1(name)
        #expect(RequestMethod(bytes.span, ByteRange(start: 0, end: bytes.count)).name == name)
        #expect(RequestMethod.other.name.isEmpty)
    }
}
