// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

extension HeadCases {
    static let lengths: [HeadCase] = [
        .fields("Content-Length: 0"), .fields("Content-Length: 5"), .fields("content-length:5"),
        .fields("CONTENT-LENGTH: \t5\t "), .fields("Content-Length: 0005"),
        .fields("Content-Length: 9223372036854775807"),

        .fields("Content-Length:", .contentLengthInvalid),
        .fields("Content-Length: -1", .contentLengthInvalid),
        .fields("Content-Length: -0", .contentLengthInvalid),
        .fields("Content-Length: +5", .contentLengthInvalid),
        .fields("Content-Length: 5 5", .contentLengthInvalid),
        .fields("Content-Length: 5,5", .contentLengthInvalid),
        .fields("Content-Length: 5, 6", .contentLengthInvalid),
        .fields("Content-Length: 5,", .contentLengthInvalid),
        .fields("Content-Length: ,5", .contentLengthInvalid),
        .fields("Content-Length: 5;", .contentLengthInvalid),
        .fields("Content-Length: 0x5", .contentLengthInvalid),
        .fields("Content-Length: 5.0", .contentLengthInvalid),
        .fields("Content-Length: 5e1", .contentLengthInvalid),
        .fields("Content-Length: 1_0", .contentLengthInvalid),
        .fields("Content-Length: \"5\"", .contentLengthInvalid),
        .fields("Content-Length: five", .contentLengthInvalid),
        .fields("Content-Length: \u{B2}", .contentLengthInvalid),
        .fields("Content-Length: 5\u{B}", .fieldValueInvalid),
        .fields("Content-Length: 9223372036854775808", .contentLengthTooLarge),
        .fields("Content-Length: 18446744073709551615", .contentLengthTooLarge),
        .fields("Content-Length: 18446744073709551616", .contentLengthTooLarge),
        .fields("Content-Length: 18446744073709551621", .contentLengthTooLarge),
        .fields("Content-Length: 99999999999999999999999999999999", .contentLengthTooLarge),
        .fields("Content-Length: 5\r\nContent-Length: 5", .contentLengthRepeated),
        .fields("Content-Length: 5\r\ncontent-length: 6", .contentLengthRepeated),
        .fields("Content-Length: 0\r\nA: b\r\nContent-Length: 6", .contentLengthRepeated),
        .fields("Content-Length: 5\r\nTransfer-Encoding: chunked", .lengthAndEncoding),
        .fields("Transfer-Encoding: chunked\r\nContent-Length: 5", .lengthAndEncoding),
        .fields("Transfer-Encoding: chunked\r\nContent-Length: 0", .lengthAndEncoding),
    ]

    static let encodings: [HeadCase] = [
        .fields("Transfer-Encoding: chunked"), .fields("transfer-encoding:chunked"),
        .fields("Transfer-Encoding: CHUNKED"), .fields("Transfer-Encoding: cHuNkEd \t"),

        .fields("Transfer-Encoding: gzip, chunked", .transferEncodingUnknown),
        .fields("Transfer-Encoding: x-custom , chunked", .transferEncodingUnknown),
        .fields("Transfer-Encoding: gzip", .transferEncodingInvalid),
        .fields("Transfer-Encoding: xchunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunkedx", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunke", .transferEncodingInvalid),
        .fields("Transfer-Encoding:", .transferEncodingInvalid),
        .fields("Transfer-Encoding: ,", .transferEncodingInvalid),
        .fields("Transfer-Encoding: identity", .transferEncodingInvalid),
        .fields("Transfer-Encoding: identity, chunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked, identity", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked, gzip", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked, chunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked,", .transferEncodingInvalid),
        .fields("Transfer-Encoding: ,chunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: gzip,,", .transferEncodingInvalid),
        .fields("Transfer-Encoding: \"chunked\"", .transferEncodingInvalid),
        .fields("Transfer-Encoding: 'chunked'", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked;a=b", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked foo", .transferEncodingInvalid),
        .fields("Transfer-Encoding: foo chunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chun\tked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: \u{B}chunked", .fieldValueInvalid),
        .fields("Transfer-Encoding: chunked\u{A0}", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .transferEncodingInvalid),
        .fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", .transferEncodingInvalid),
        .fields("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", .transferEncodingInvalid),
        .refused(
            .transferEncodingOldVersion, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
        .refused(
            .transferEncodingOldVersion,
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    ]

    static let connections: [HeadCase] = [
        .fields("Connection: close"), .fields("Connection: , ,close,,keep-alive,"), .fields("Connection:"),
        .fields("Connection: a, b ,c\t,\td"), .fields("Connection: close\r\nConnection: a"),
        .fields("Connection: " + Array(repeating: "a", count: 64).joined(separator: ",")),
        .fields("Connection: close; a", .connectionInvalid),
        .fields("Connection: close a", .connectionInvalid),
        .fields("Connection: \"close\"", .connectionInvalid),
        .fields("Connection: a=b", .connectionInvalid),
        .fields("Connection: \u{E9}", .connectionInvalid),
        .fields("Connection: " + Array(repeating: "a", count: 65).joined(separator: ","), .connectionInvalid),
    ]
}
