// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How much at once.
package struct LimitSettings: Sendable, Equatable {
    /// Connections of callers.
    package var callers = 1024
    /// Exchanges under way.
    package var exchanges = 4096
    /// Exchanges that wait for a login.
    package var waiters = 1024
    /// Bytes of a request's head.
    package var head = 65_536
    /// Bytes that all request bodies kept on disk may take together; zero: none is kept there.
    package var replay = 268_435_456
}

/// Where conversations are recorded.
package enum AuditDestination: String, Sendable, CaseIterable {
    /// The journal: who, which challenge, which credential by name, the outcome.
    case journal
    /// Nowhere.
    case none
}

/// Whether there is an access log, where, and of what.
package struct AccessLogSettings: Sendable, Equatable {
    /// How its lines look.
    package enum Format: String, Sendable, CaseIterable {
        /// As log readers know it.
        case common
        /// One object a line.
        case json
        /// There is none.
        case none
    }

    /// How its lines look.
    package var format = Format.none
    /// The file; `nil`: standard output.
    package var path: String?
    /// Whether it has the queries of requests.
    package var query = false
}

/// How many event loops.
package enum WorkerCount: Sendable, Equatable {
    /// One per core, at most 4.
    case automatic
    /// So many, from 1 to 64.
    case exactly(Int)
}

/// What is logged and how.
package struct LogSettings: Sendable, Equatable {
    /// From which severity on; the names of swift-log.
    package enum Level: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// In which form.
    package enum Format: String, Sendable, CaseIterable {
        /// The journal under systemd, text on a terminal, JSON otherwise.
        case automatic = "auto"
        /// Entries with fields.
        case journal
        /// One object a line.
        case json
        /// One line for a reader.
        case text
    }

    /// From which severity on.
    package var level = Level.info
    /// In which form.
    package var format = Format.automatic
}
