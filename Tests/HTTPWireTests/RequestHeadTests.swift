// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Test("a request is told apart, and the one behind it is left alone")
func typicalRequest() throws {
    var queue = ByteQueue()
    queue.append("GET /a/b?c=d HTTP/1.1\r\nHost: localhost:8080\r\nX-A:  v \r\nConnection: x-a\r\n\r\nGET /")
    var parser = RequestHeadParser()
    let outcome = queue.withSpan { parser.parse($0) }
    #expect(outcome == .complete(length: queue.count - 5))
    #expect(parser.head.method == .get)
    #expect(parser.head.fields.map(\.isHopByHop) == [false, true, true])
    #expect(queue.withSpan { $0.text(parser.head.target.pathAndQuery) } == "/a/b?c=d")
    #expect(queue.withSpan { $0.text(parser.head.fields[1].value) } == "v")
}
