// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Permission to spend an attempt: by a flag, or by a person at the terminal.
struct Consent {
    /// True if every question is answered with yes.
    let isGiven: Bool

    /// Returns whether the answer to `question` is yes. Without a terminal nothing is spent.
    func allows(_ question: String) -> Bool { isGiven || Self.ask(question) }

    private static func ask(_ question: String) -> Bool {
        guard let terminal = try? Descriptor(opening: "/dev/tty", O_RDWR) else { return false }
        guard (try? terminal.writeAll(Array("\(question) [y/N] ".utf8))) != nil else { return false }
        // A terminal gives one line at a time.
        guard let answer = try? DescriptorIO.read(from: terminal.number, atMost: 256) else { return false }
        let word = String(decoding: answer, as: UTF8.self).lowercased().prefix { $0.isLetter }
        return word == "y" || word == "yes"
    }
}
