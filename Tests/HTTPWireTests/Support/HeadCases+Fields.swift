// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

extension HeadCases {
    private static func host(_ value: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "GET / HTTP/1.1\r\nHost:\(value)\r\n\r\n", refusal: refusal)
    }

    static let hosts: [HeadCase] = [
        host("a"), host(" a "), host("\ta\t"), host(" a.example:8080"), host(" 127.0.0.1:80"), host(" a:"),
        host(" a_b~c"), host(" [::1]"), host(" [::1]:8080"), host(" [2001:db8::1]"), host(" [::]"), host(" [1::]"),
        host(" [1:2:3:4:5:6:7:8]"), host(" [::ffff:127.0.0.1]"), host(" [1:2:3:4:5:6:1.2.3.4]"), host(" a:65535"),
        .taken("GET / HTTP/1.0\r\n\r\n"),
        .taken("GET / HTTP/1.1\r\nHOST: a\r\n\r\n"),
        .taken("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"),

        host("", .hostInvalid), host("  ", .hostInvalid), host(" :80", .hostInvalid), host(" a b", .hostInvalid),
        host(" a, b", .hostInvalid), host(" a,b", .hostInvalid), host(" a/b", .hostInvalid),
        host(" http://a", .hostInvalid), host(" u@a", .hostInvalid), host(" a:b", .hostInvalid),
        host(" a:80:80", .hostInvalid), host(" a:65536", .hostInvalid), host(" a:123456", .hostInvalid),
        host(" a:-1", .hostInvalid), host(" a:+1", .hostInvalid), host(" a: 80", .hostInvalid),
        host(" a?b", .hostInvalid), host(" a#b", .hostInvalid), host(" a\\b", .hostInvalid),
        host(" %61", .hostInvalid), host(" \u{E9}", .hostInvalid), host(" [", .hostInvalid), host(" []", .hostInvalid),
        host(" [::1", .hostInvalid), host(" ::1", .hostInvalid), host(" [::1]a", .hostInvalid),
        host(" [:1]", .hostInvalid), host(" [1:]", .hostInvalid), host(" [1::2::3]", .hostInvalid),
        host(" [1:2:3:4:5:6:7]", .hostInvalid), host(" [1:2:3:4:5:6:7:8:9]", .hostInvalid),
        host(" [::1%25eth0]", .hostInvalid), host(" [12345::]", .hostInvalid), host(" [:::]", .hostInvalid),
        host(" [g::]", .hostInvalid), host(" [::1.2.3]", .hostInvalid), host(" [::1.2.3.256]", .hostInvalid),
        host(" [::01.2.3.4]", .hostInvalid), host(" [1.2.3.4]", .hostInvalid), host(" [::1.2.3.4:1]", .hostInvalid),
        host(" [1:2:3:4:5:6:7::8]", .hostInvalid), host(" [v1.a]", .hostInvalid),
        .refused(.hostMissing, "GET / HTTP/1.1\r\n\r\n"),
        .refused(.hostMissing, "GET http://a/ HTTP/1.1\r\n\r\n"),
        .refused(.hostMissing, "GET / HTTP/1.2\r\n\r\n"),
        .refused(.hostRepeated, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        .refused(.hostRepeated, "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"),
        .refused(.hostRepeated, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
        .refused(.hostInvalid, "GET / HTTP/1.0\r\nHost: a b\r\n\r\n"),
    ]

    static let fieldLines: [HeadCase] = [
        .fields("A: b"), .fields("A:b"), .fields("A:"), .fields("A: \t "), .fields("A: \t b \t c \t "),
        .fields("A: \u{80}\u{FF}"), .fields("!#$%&'*+-.^_`|~09az: b"), .fields("A: ~!\"\\{}[]"), .fields("A: b: c"),
        .fields("A: b\r\nA: c"),

        .fields("A", .fieldColonMissing),
        .fields("A\r\nB: c", .fieldColonMissing),
        .fields(": b", .fieldNameInvalid),
        .fields(":", .fieldNameInvalid),
        .fields("A : b", .fieldSpaceBeforeColon),
        .fields("A\t: b", .fieldSpaceBeforeColon),
        .fields("Content-Length : 5", .fieldSpaceBeforeColon),
        .fields("Transfer-Encoding : chunked", .fieldSpaceBeforeColon),
        .fields("A B: c", .fieldNameInvalid),
        .fields("A B", .fieldNameInvalid),
        .fields("A(: b", .fieldNameInvalid),
        .fields("A\u{0}: b", .fieldNameInvalid),
        .fields("A\r: b", .fieldNameInvalid),
        .fields("A\u{B}: b", .fieldNameInvalid),
        .fields("A\u{7F}: b", .fieldNameInvalid),
        .fields("A\u{E9}: b", .fieldNameInvalid),
        .fields("\"A\": b", .fieldNameInvalid),
        .fields("A/B: c", .fieldNameInvalid),
        .fields("A@B: c", .fieldNameInvalid),
        .fields("\u{0}", .fieldNameInvalid),
        .fields("A: b\u{0}c", .fieldValueInvalid),
        .fields("A: b\rc", .fieldValueInvalid),
        .fields("A: b\r", .fieldValueInvalid),
        .fields("A: \r", .fieldValueInvalid),
        .fields("A:\r", .fieldValueInvalid),
        .fields("A: b\u{1}", .fieldValueInvalid),
        .fields("A: b\u{8}c", .fieldValueInvalid),
        .fields("A: b\u{B}c", .fieldValueInvalid),
        .fields("A: b\u{C}", .fieldValueInvalid),
        .fields("A: \u{1F}b", .fieldValueInvalid),
        .fields("A: b\u{7F}", .fieldValueInvalid),
        .fields("A: b\r\rHost: b", .fieldValueInvalid),
        .fields("A: b\nC: d", .bareLineFeed),
        .fields("A: b\n", .bareLineFeed),
        .fields("A: b\r\n\nC: d", .bareLineFeed),
        .fields("A: b\r\n c", .fieldsFolded),
        .fields("A: b\r\n\tc", .fieldsFolded),
        .fields("A: b\r\n ", .fieldsFolded),
        .fields("A: b\r\n Content-Length: 5", .fieldsFolded),
        .fields("Transfer-Encoding:\r\n chunked", .transferEncodingInvalid),
        .refused(.fieldLeadingSpace, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
        .refused(.fieldLeadingSpace, "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"),
        .refused(.fieldLeadingSpace, "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"),
        .refused(.bareLineFeed, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
        .refused(.bareLineFeed, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
        .refused(.fieldNameInvalid, "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n"),
    ]
}
