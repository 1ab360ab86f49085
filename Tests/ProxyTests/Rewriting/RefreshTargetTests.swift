// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import Proxy

@Test(
    "the address in a Refresh is found as browsers find it",
    arguments: [
        ("5; url=/next", "/next"), ("0;URL=https://a/b?c;d", "https://a/b?c;d"), (" 5 , Url = '/a b' x", "/a b"),
        ("5;url=\"/a", "/a"), ("5; /next", "/next"), ("5 /next", "/next"), ("1.5;url=x", "x"), ("5;url=", nil),
        ("5;url", "url"), ("5;url x", "url x"), ("5", nil), ("5;", nil), ("", nil), ("url=/x", nil), ("x;url=/x", nil),
        ("5x;url=/x", nil), ("5;url=''", ""), ("5;url='", ""), (";url=/x", nil), ("5;urls=/x", "urls=/x"),
    ] as [(String, String?)])
func refreshTargets(value: String, target: String?) {
    let bytes = Array("..\(value)..".utf8)
    let range = RefreshTarget.range(bytes.span, ByteRange(start: 2, end: bytes.count - 2))
    #expect(range.map { bytes.span.text($0) } == target)
    let beyond = RefreshTarget.range(bytes.span, ByteRange(start: 2, end: bytes.count + 2))
    #expect(beyond == nil)
}
