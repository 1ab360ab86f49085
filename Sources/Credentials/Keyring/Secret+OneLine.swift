// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

extension Secret {
    /// Throws `invalid` for text of several lines, which no prompt can take: as a rule, more was piped in than was meant.
    ///
    /// PEM is text of several lines by its nature, and what is no UTF-8 is no text: a keytab, random bytes as a key.
    func requireOneLine(_ what: String) throws(KeyringError) {
        let (lines, isPEM) = withBytes { bytes in
            var breaks = 0
            for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
                breaks += 1
            }
            let start = Array("-----BEGIN ".utf8)
            let isPEM = bytes.count >= start.count && start.indices.allSatisfy { bytes[$0] == start[$0] }
            return (breaks, isPEM)
        }
        guard lines > 0, !isPEM, String(validating: revealBytes(), as: UTF8.self) != nil else { return }
        throw KeyringError(
            .invalid,
            "\(what) is one line, and this has a line break within it (one at its end is left out); nothing was changed. "
                + "Only PEM and binary values have several lines")
    }
}
