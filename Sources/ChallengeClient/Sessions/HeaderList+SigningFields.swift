// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl

extension HeaderList: SigningFields {
    /// Shows each field that is sent.
    package func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        forEachField { (line: Span<UInt8>, isEmpty: Bool) in
            if isEmpty { return body(line, Span()) }
            var end = 0
            while end < line.count, line[end] != UInt8(ascii: ":") { end += 1 }
            // A colon and a space stand between them.
            body(line.extracting(..<end), line.extracting(min(end + 2, line.count)...))
        }
    }
}
