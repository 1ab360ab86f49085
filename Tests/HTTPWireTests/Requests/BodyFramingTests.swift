// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Test("the framing of a request's body is none, a length or chunked")
func framings() {
    #expect(head(fields: "A: b").body == .none)
    #expect(head(fields: "Content-Length: 0").body == .length(0))
    #expect(head(fields: "Content-Length: 0042").body == .length(42))
    #expect(head(fields: "Content-Length: 9223372036854775807").body == .length(UInt64(Int64.max)))
    #expect(head(fields: "Transfer-Encoding: Chunked").body == .chunked)
    #expect(BodyFraming.none.isEmpty)
    #expect(BodyFraming.length(0).isEmpty)
    #expect(!BodyFraming.length(1).isEmpty)
    #expect(!BodyFraming.chunked.isEmpty)
}

@Test("Connection cannot remove the framing fields or Host")
func nominationKeepsFraming() {
    let length = head(fields: "Content-Length: 5\r\nConnection: content-length, host, close")
    #expect(length.body == .length(5))
    #expect(length.host != nil)
    #expect(!length.keepsAlive)
    #expect(length.fields.map(\.isHopByHop) == [true, true, true])
    let chunked = head(fields: "Connection: transfer-encoding\r\nTransfer-Encoding: chunked")
    #expect(chunked.body == .chunked)
}

@Test("each refused request has the status of its rule")
func statuses() {
    let expected: [WireErrorCode: Int] = [
        .requestLineTooLong: 414, .expectationUnknown: 417, .fieldsTooMany: 431, .headTooLarge: 431,
        .trailersTooLarge: 431, .methodTooLong: 501, .transferEncodingUnknown: 501, .versionUnsupported: 505,
    ]
    for code in WireErrorCode.allCases {
        #expect(WireError(code).status == expected[code] ?? 400)
        #expect(WireError(upstream: code).status == 502)
        #expect(WireError(code).detail.contains("RFC "))
        #expect(WireError(code).description == "\(WireError(code).status) \(code.rawValue): \(code.detail)")
    }
    #expect(WireError(.hostMissing) != WireError(upstream: .hostMissing))
}
