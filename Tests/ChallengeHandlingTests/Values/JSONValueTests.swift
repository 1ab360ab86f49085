// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("JSON values")
struct JSONValueTests {
    @Test(
        "a number that is whole in 64 bits is an integer, however it is written",
        arguments: [
            ("1", 1), ("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("9223372036854775807", .max),
            // A double has no fraction up there.
            ("92203685477222077.0290100", 92_203_685_477_222_080),
        ] as [(String, Int64)])
    func whole(_ text: String, _ number: Int64) {
        #expect(JSONValue(parsing: Array(text.utf8)) == .integer(number))
    }

    @Test(
        "a number with a fraction or beyond 64 bits is not an integer",
        arguments: ["1.5", "-1e-3", "1e300", "9223372036854775808"])
    func broken(_ text: String) throws {
        let value = try #require(JSONValue(parsing: Array(text.utf8)))
        guard case .double = value else {
            Issue.record("\(text) is \(value)")
            return
        }
        #expect(value.integerValue == nil && JSONValue(parsing: value.serialized()) == value)
    }
}
