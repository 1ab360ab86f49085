// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire
internal import SettingsReading

/// Limits on concurrent work.
package struct LimitSettings: Sendable, Equatable {
    /// Most connections of callers.
    package var callers = 1024
    /// Most exchanges in progress.
    package var exchanges = 4096
    /// Most exchanges that wait for a login.
    package var waiters = SessionLimits().waiters
    /// Largest head of a request, in bytes.
    package var head = HeadLimits().head
    /// Disk space for all kept request bodies, in bytes. Zero keeps none on disk.
    package var replay = 268_435_456
}

extension LimitSettings {
    /// Range of a number of callers or exchanges.
    static let counts = 1...1_048_576

    private enum Keys {
        static let callers = Key(
            "callers", .integer(in: counts), default: LimitSettings().callers,
            "Maximum number of connected callers on all listeners together.")
        static let exchanges = Key(
            "exchanges", .integer(in: counts), default: LimitSettings().exchanges,
            "Maximum number of exchanges at once.")
        static let waiters = Key(
            "waiters", .integer(in: counts), default: LimitSettings().waiters,
            "Maximum number of exchanges that wait for a login at once.")
        static let head = Key(
            "head", .size(in: 1024...1_048_576), default: LimitSettings().head, "Maximum size of a request's head.")
        static let replay = Key(
            "replay", .size, default: LimitSettings().replay,
            "Maximum total size of request bodies on disk; `0` keeps none there.")
    }

    /// Table of `limits`.
    static let section = KeySection(
        "limits", [Keys.callers, Keys.exchanges, Keys.waiters, Keys.head, Keys.replay])

    /// Reads `limits`.
    static func read(_ fields: Fields) -> LimitSettings {
        LimitSettings(
            callers: fields[Keys.callers], exchanges: fields[Keys.exchanges], waiters: fields[Keys.waiters],
            head: fields[Keys.head], replay: fields[Keys.replay])
    }
}

/// Number of event loops.
package enum WorkerCount: Sendable, Equatable {
    /// One per core, at most 4.
    case automatic
    /// A fixed number, 1 to 64.
    case exactly(Int)
}

extension ValueForm where Content == WorkerCount {
    /// `auto`, or a number.
    static let workers = ValueForm(
        "`auto`, or 1 to 64", choices: ["auto"],
        write: { count in if case .exactly(let number) = count { .scalar("\(number)") } else { .scalar("auto") } },
        read: { value in
            guard let text = value.text() else { return nil }
            if text == "auto" { return .automatic }
            guard let number = Int(text), (1...64).contains(number) else {
                value.report("\"\(text)\" is neither auto nor a whole number from 1 to 64")
                return nil
            }
            return .exactly(number)
        })
}
