// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// Returns the text that `body` writes.
private func written(_ body: (inout ByteQueue) -> Void) -> String {
    var queue = ByteQueue()
    body(&queue)
    return queue.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
}

private func shown(_ bytes: Span<UInt8>) -> String { bytes.text(ByteRange(start: 0, end: bytes.count)) }

@Suite("Requests as they are written")
struct RequestWriterTests {
    @Test("a written request head is read back field by field")
    func head() {
        let sink = FieldSink()
        var target = ByteQueue()
        target.append("/a%20b?c=d")
        sink.begin(latin1("M-SEARCH").span, target)
        sink.append(name: "Host", value: "a.example")
        sink.append(name: latin1("X-Empty").span, value: latin1(" \t ").span)
        sink.append(name: "X-Long", value: String(repeating: "z", count: 5000))
        sink.append(name: "X-Last", value: "a: b; c")
        var fields: [String] = []
        sink.forEachField { name, value in
            fields.append("\(shown(name))=\(shown(value))")
        }
        let long = String(repeating: "z", count: 5000)
        #expect(fields == ["Host=a.example", "X-Empty=", "X-Long=\(long)", "X-Last=a: b; c"])
        sink.end(.length(7))
        #expect(sink.isComplete)
        let text = written { sink.take(into: &$0) }
        #expect(
            text == """
                M-SEARCH /a%20b?c=d HTTP/1.1\r\nHost: a.example\r\nX-Empty:\r\nX-Long: \(long)\r\nX-Last: a: b; c\r
                Content-Length: 7\r\n\r\n
                """)
        #expect(written { sink.take(into: &$0) }.isEmpty)
    }

    @Test("a left-out field makes the request head incomplete until the next one")
    func bad() {
        let sink = FieldSink()
        var target = ByteQueue()
        target.append("/")
        sink.begin(latin1("GET").span, target)
        sink.append(name: "X", value: "a\r\nY: b")
        sink.append(name: "Z", value: "c")
        #expect(!sink.isComplete)
        sink.end(.chunked)
        let text = written { queue in
            queue.append("+")
            sink.take(into: &queue)
        }
        #expect(text == "+GET / HTTP/1.1\r\nZ: c\r\nTransfer-Encoding: chunked\r\n\r\n")
        sink.begin(latin1("GET").span, target)
        #expect(sink.isComplete)
        target.append(" ")
        sink.begin(latin1("GET").span, target)
        #expect(!sink.isComplete)
    }

    @Test(
        "a request line that could be read as two, or as another one, is not written",
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
        "a request field that could be read as two is not written",
        arguments: [
            ("X", "a\r\nY: b"), ("X", "a\nb"), ("X", "a\u{0}"), ("X", "a\u{7F}"), ("X\r\nY", "a"), ("", "a"),
            ("X ", "a"),
            (" X", "a"), ("X;", "a"), ("X:", ""), ("", ""), ("\u{E9}", "a"),
        ])
    func badFields(name: String, value: String) {
        var isWritten = true
        let text = written { isWritten = RequestWriter.field(latin1(name).span, latin1(value).span, to: &$0) }
        #expect(!isWritten)
        #expect(text.isEmpty)
    }

    @Test(
        "a method is written as it was parsed",
        arguments: ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"])
    func methods(name: String) {
        let bytes = latin1(name)
        #expect(RequestMethod(bytes.span, ByteRange(start: 0, end: bytes.count)).name == name)
        #expect(RequestMethod.other.name.isEmpty)
    }
}
