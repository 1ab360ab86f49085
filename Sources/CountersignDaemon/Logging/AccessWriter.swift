// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Logging
internal import Proxy
internal import Settings

/// The access log: where records go, by a queue with a thread of its own, so that no event loop waits for a disk. What its reader
/// does not take in time is dropped and told in the log.
final class AccessWriter: AccessRecorder {
    let wantsQuery: Bool
    private let format: AccessFormat
    private let queue: LogQueue

    /// The log that `settings` ask for; `nil`: none. Opens a file anew each time, so that one that was moved away is let go of at
    /// a reload. Throws where it cannot be opened.
    init?(_ settings: AccessLogSettings) throws(CompositionError) {
        switch settings.format {
        case .none: return nil
        case .common: format = .common
        case .json: format = .json
        }
        wantsQuery = settings.query
        let file = try AccessFile(settings.path)
        let logger = Logger(label: "access")
        do throws(ThreadError) {
            queue = try LogQueue(capacity: 4 * LogQueue.defaultCapacity) { lines, dropped in
                if dropped > 0 {
                    logger.warning(
                        "access log lines dropped: their reader is too slow",
                        metadata: ["dropped": .stringConvertible(dropped)])
                }
                file.write(lines)
            }
        } catch {
            throw CompositionError("access-log: \(error)")
        }
    }

    func write(_ record: AccessRecord) { queue.append(.bytes(format.line(record))) }

    /// Waits until all is written, for the end of the process.
    func flush() { queue.flush(within: .seconds(1)) }
}
